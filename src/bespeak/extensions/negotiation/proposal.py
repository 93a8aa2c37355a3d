"""A proposal: the endpoint that an agent asks for (core 4.6), and its first four evaluations (AGTP-API 10.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.checks.lint.registration import check_contract
from bespeak.checks.lint.rules import security
from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.grammar.syntax import Template, check_path, leaking_segment, parse_template
from bespeak.contract.handler import COMPOSITION_FAILED, Composition
from bespeak.contract.limits import read_duration
from bespeak.contract.policy import Policies
from bespeak.contract.schema.safety import find_hazards
from bespeak.contract.schema.validation import DIALECT
from bespeak.documents.deployment.endpoint_toml import READERS, TYPES
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import is_session_id
from bespeak.protocol.exchange.principal import is_scope_token
from bespeak.protocol.exchange.refusal import Refused
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.names import plural
from bespeak.text.language.segment import is_plain_verb, judge_segment
from bespeak.text.reading.settings import read_values
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location

_WRAPPERS: Final = ("endpoint", "proposal")
_VERBS: Final = ("method", "name", "proposed_method")  # names of the verb in parameter tables, by precedence
_BARE: Final = (*_VERBS, "path", "semantic", "signature", "input_schema", "output_schema", "input", "output")
"""Members of a definition that stands in the body itself."""
_READ: Final = ("method", "path", "description", "semantic", "input_schema", "input", "output_schema", "output")
"""Members of a definition that are read; the rest is for the server to say."""
_SHARED: Final = ("errors", "required_scopes", "confirm")
_FORMS: Final = "Send the definition as `endpoint`, as `proposal`, or as the body itself with `method` and `path`."
_FAILURE: Final = DeclaredError(COMPOSITION_FAILED, "A step of the composition failed.")

_NOTHING: Final = Semantic(intent="", actor="", outcome="", confidence=0.0, impact="", is_idempotent=False)

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What an agent proposes. The endpoint may be invalid: the findings say how."""

    endpoint: Endpoint
    findings: tuple[Diagnostic, ...] = ()  # findings of reading, with pointers that start at `/endpoint`
    is_brief: bool = False  # True if the body has no semantic block, so that the server says what a call does
    persistent: bool = False
    duration: int | None = None  # seconds for which a persistent endpoint is requested; None for the server's choice
    scopes: tuple[str, ...] = ()  # authority that the proposal names
    session_id: str | None = None

    @cached_property
    def contract(self) -> str:
        return hashlib.sha256(_encode(_plain(project_endpoint(self.endpoint)))).hexdigest()

    @property
    def digest(self) -> str:
        """Digest of the whole proposal: two with one digest ask for the same."""
        return f"{self.contract}{'-persistent' if self.persistent else ''}"


def read_proposal(body: Mapping[str, Any], catalog: Catalog) -> Proposal | Refused:
    """Read a proposal; refuse a body in which no single definition can be found."""
    holder = _unwrap(body)
    definition = _find_definition(holder)
    if isinstance(definition, Refused):
        return definition
    settings = {"session_id": body.get("session_id"), **holder}
    persistent, duration = settings.get("persistent", False), settings.get("requested_duration")
    seconds = read_duration(duration) if isinstance(duration, str) else None
    session_id = settings.get("session_id")
    if not isinstance(persistent, bool):
        return _invalid("persistent", "must be true or false.")
    if duration is not None and seconds is None:
        return _invalid("requested_duration", 'must be a duration, such as "24h", "7d" or "P7D".')
    if session_id is not None and not (isinstance(session_id, str) and is_session_id(session_id)):
        return _invalid("session_id", "must be the id of a session, as in the header Session-ID.")
    requested = _list_scopes(settings.get("scope_requested", []))
    if requested is None:
        return _invalid("scope_requested", "must be scopes, as a list or separated by commas.")
    endpoint, findings, is_brief = _read_endpoint(definition, catalog)
    return Proposal(
        endpoint=endpoint,
        findings=tuple(findings),
        is_brief=is_brief,
        persistent=persistent,
        duration=seconds,
        scopes=tuple(dict.fromkeys((*endpoint.required_scopes, *requested))),
        session_id=session_id,
    )


def _unwrap(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members around the definition: those of `parameters` in the envelope of floor methods."""
    inner = body.get("parameters")
    own = any(name in body for name in (*_WRAPPERS, *_BARE) if name != "method")
    return inner if isinstance(inner, dict) and not own and body.get("method", "PROPOSE") == "PROPOSE" else body


def _find_definition(holder: Mapping[str, Any]) -> dict[str, Any] | Refused:
    wrapped = [name for name in _WRAPPERS if name in holder]
    bare = [name for name in _BARE if name in holder and not (name == "method" and holder[name] == "PROPOSE")]
    if len(wrapped) > 1 or (wrapped and bare):
        names = ", ".join(f"`{name}`" for name in (*wrapped, *bare)[:5])
        message = f"The body has more than one proposal: {names}. {_FORMS}"
        return Refused(status.BAD_REQUEST, "ambiguous-body", message)
    found = holder[wrapped[0]] if wrapped else dict(holder)
    if not isinstance(found, dict):
        return _invalid(wrapped[0], f"must be an object with the definition of an endpoint. {_FORMS}")
    verbs = {found[name] for name in _VERBS if isinstance(found.get(name), str)}
    if len(verbs) > 1:
        message = f"The proposal names more than one verb: {', '.join(sorted(verbs))[:200]}. Keep one of them."
        return Refused(status.BAD_REQUEST, "ambiguous-body", message)
    if not verbs:
        return Refused(status.BAD_REQUEST, "invalid-proposal", f"The proposal names no method. {_FORMS}")
    return {**found, "method": verbs.pop()}


def _read_endpoint(given: dict[str, Any], catalog: Catalog) -> tuple[Endpoint, list[Diagnostic], bool]:
    """Read a definition. One without a semantic block is completed from what it says."""
    written = given.get("semantic")
    short = written is None and any(name in given for name in ("name", "proposed_method"))
    definition = {name: given[name] for name in (*_READ, *_SHARED) if given.get(name) is not None}
    if short:
        definition = _complete(definition, given)
    elif not definition.get("description") and isinstance(written, dict):
        definition["description"] = written.get("intent")
    definition.setdefault("errors", [])
    definition.setdefault("semantic", {})
    findings = Findings(lambda _: Location("proposal"))
    readers = {**READERS, "handler": lambda _: Composition(recipe="")}
    values = read_values(Endpoint, Table(definition, "/endpoint", findings), readers=readers)
    semantic: Semantic = values["semantic"] or _NOTHING
    verb = catalog.verbs.get(values["method"])
    if not semantic.capability and verb is not None:
        semantic = replace(semantic, capability=verb.categories[0])
    # What only AGIS documents carry is for the operator to say: a tool name could be that of another endpoint.
    values["semantic"] = replace(
        semantic,
        confidence=float(semantic.confidence),
        confidence_guidance=None,
        parameter_hints={},
        state_transition={},
        mcp_tool_name=None,
        concepts=(),
    )
    schema = values["input_schema"]
    if isinstance(schema, dict) and not {"additionalProperties", "unevaluatedProperties"} & schema.keys():
        # Undeclared fields are refused unless the proposal says otherwise (AGTP-API 13.3).
        values["input_schema"] = {**schema, "additionalProperties": False}
    endpoint = Endpoint(**values)
    if COMPOSITION_FAILED not in endpoint.error_names:
        endpoint = replace(endpoint, errors=(*endpoint.errors, _FAILURE))
    return endpoint, findings.found, short


def _complete(definition: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the short forms: `name` and `parameters`, or `proposed_method`, `signature` and `intent`."""
    signature = given.get("signature")
    signed: Mapping[str, Any] = signature if isinstance(signature, dict) else {}
    path = definition.setdefault("path", "/")
    parameters = _first(signed, "parameters", "input_schema", "input") or given.get("parameters")
    returned = _first(signed, "response", "output_schema", "output", "returns")
    if "input_schema" not in definition and "input" not in definition:
        template = parse_template(path) if isinstance(path, str) else None
        names = template.parameters if isinstance(template, Template) else ()
        definition["input_schema"] = _object_schema(parameters, closed=True, also=names)
    if "output_schema" not in definition and "output" not in definition:
        definition["output_schema"] = _object_schema(returned, closed=False)
    intent = given.get("intent")
    if not isinstance(intent, str) or not intent.strip():
        intent = definition.get("description") or f"{definition['method']} {path}, as proposed by an agent."
    outcome = signed.get("outcome")
    definition.setdefault("description", intent)
    definition["semantic"] = {
        "intent": intent,
        "actor": "agent",
        "outcome": outcome if isinstance(outcome, str) else "The result of the composed calls is returned.",
        # Claims nothing: the plan says what a call does, and how sure it is.
        "confidence": 1.0,
        "impact": "informational",
        "is_idempotent": True,
    }
    return definition


def _first(given: Mapping[str, Any], *names: str) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _object_schema(fields: Any, *, closed: bool, also: tuple[str, ...] = ()) -> Any:
    """Build a schema of a map of fields to types or schemas, of a list of fields, or of a schema itself."""
    if isinstance(fields, dict) and isinstance(fields.get("properties"), dict):
        return {**fields, "additionalProperties": False} if closed else fields
    if isinstance(fields, list):
        entries = [each for each in fields if isinstance(each, dict)]
        fields = {name: entry for entry in entries if isinstance(name := entry.get("name"), str)}
    properties: dict[str, Any] = {}
    optional: set[str] = set()
    for name, field in fields.items() if isinstance(fields, dict) else ():
        if isinstance(field, str):
            properties[name] = {"type": field} if field in TYPES else {"description": field}
        elif isinstance(field, dict):
            properties[name] = {key: value for key, value in field.items() if key not in ("name", "required")}
            optional |= {name} if field.get("required") is False else set()
        else:
            properties[name] = field
    for name in also:
        properties.setdefault(name, {"type": "string"})
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": not closed,
    }


def _list_scopes(value: Any) -> list[str] | None:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(scope, str) for scope in listed):
        return None
    tokens = [scope.strip() for scope in listed if scope.strip()]
    return tokens if all(map(is_scope_token, tokens)) else None


def _plain(value: Any) -> Any:
    """Write whole numbers as integers: JSON does not tell 1 from 1.0, and other languages change one into the other."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _invalid(member: str, fault: str) -> Refused:
    return Refused(status.BAD_REQUEST, "invalid-proposal", f"`{member}` {fault}", {"field": f"/{member}"})


LONGEST_TEXT: Final = 500
"""Maximum characters of description, intent and outcome: a persistent endpoint puts them into the manifest."""
LONGEST_PATH: Final = 500  # maximum characters of a path

# The texts of a synthesis are read by the models of other agents, so what lint only warns about is refused here.
_UNSAFE: Final = frozenset(
    rule.id for rule in (security.INJECTION, security.ROLE, security.INVISIBLE, security.BLOB, security.GAP)
)


def check_conformance(proposal: Proposal, catalog: Catalog, policies: Policies) -> Refused | None:
    """Return the refusal of the first evaluation that fails; None if the contract is valid."""
    endpoint = proposal.endpoint
    unsafe = list(_check_schemas(endpoint))
    if unsafe:  # schemas that are safe to check take their place, so that verb and path are judged first
        template = parse_template(endpoint.path)
        names = template.parameters if isinstance(template, Template) else ()
        plain = {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
        endpoint = replace(endpoint, input_schema=plain, output_schema={"type": "object"})
    findings = [*proposal.findings, *check_contract(endpoint, catalog, policies), *unsafe]
    if len(endpoint.path) > LONGEST_PATH:
        message = f"a proposed path must have at most {LONGEST_PATH} characters; this has {len(endpoint.path)}"
        findings.insert(len(proposal.findings), Diagnostic("", "error", message, None, "/endpoint/path"))
    errors = [finding for finding in findings if finding.severity == "error"]
    for prefix, refuse in _LADDER:
        found = [finding for finding in errors if finding.pointer.startswith(prefix)]
        if found:
            return refuse(endpoint, catalog, found)
    spoken = list(_check_texts(endpoint, catalog))
    code = "invalid-schema" if spoken and "_schema" in spoken[0].pointer else "invalid-semantic"
    return _refuse(code, spoken) if spoken else None


def _method_violation(endpoint: Endpoint, catalog: Catalog, findings: list[Diagnostic]) -> Refused:
    shown = endpoint.method[:64]
    details = {"method": shown, "catalog_version": catalog.version, "suggestions": catalog.suggest(endpoint.method)}
    return Refused(status.METHOD_VIOLATION, "method-violation", _say(findings[0]), details)


def _endpoint_violation(endpoint: Endpoint, catalog: Catalog, findings: list[Diagnostic]) -> Refused:
    fault = check_path(endpoint.path, catalog.names)
    details = {"path": endpoint.path[:300], "segment": "" if fault is None else fault.at[:120]}
    message = _say(findings[0])
    instead = _suggest(endpoint.path, catalog)
    if instead is not None:
        details["suggestion"] = instead
        message = f"{message} {instead} would be allowed."
    return Refused(status.ENDPOINT_VIOLATION, "endpoint-violation", message, details)


def _suggest(path: str, catalog: Catalog) -> str | None:
    """Return the path with things in place of verbs, such as /users/profiles for /users/profile."""
    if len(path) > LONGEST_PATH:
        return None
    segments = path[1:].split("/")
    for at, segment in enumerate(segments):
        is_word = segment.replace("-", "").replace("_", "").isalpha()
        if is_word and leaking_segment(f"/{segment}", catalog.names) is not None:
            judged = judge_segment(segment)
            if judged is not None and judged.instead is not None:
                segments[at] = judged.instead
            elif not is_plain_verb(segment.lower(), lexicon()):
                segments[at] = plural(segment)  # of a word that is also a noun
    suggested = f"/{'/'.join(segments)}"
    return suggested if suggested != path and check_path(suggested, catalog.names) is None else None


_LADDER: Final[tuple[tuple[str, Callable[[Endpoint, Catalog, list[Diagnostic]], Refused]], ...]] = (
    ("/endpoint/method", _method_violation),
    ("/endpoint/path", _endpoint_violation),
    ("/endpoint/semantic", lambda _, __, findings: _refuse("invalid-semantic", findings)),
    ("/endpoint", lambda _, __, findings: _refuse("invalid-schema", findings)),
)
"""Evaluations 1 to 4 by the part of the definition that their findings point at."""


def _check_schemas(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Yield what makes a schema unsafe to compile and to search."""
    for name in ("input_schema", "output_schema"):
        schema: Any = getattr(endpoint, name)
        for trap in find_hazards(schema) if isinstance(schema, dict) else ():
            yield Diagnostic("", "error", trap.message, None, f"/endpoint/{name}{trap.at}", trap.advice)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        for key, value in properties.items() if isinstance(properties, dict) else ():
            if value is False:
                message = f"the field {brief(key)} allows no value"
                yield Diagnostic("", "error", message, None, f"/endpoint/{name}", "Leave it out.")


def texts_of(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """Yield every text of a contract with its place: all that a model may read once it is published."""
    yield "path", endpoint.path
    yield from _prose(endpoint).items()
    for name in ("input_schema", "output_schema"):
        yield from ((name, text) for _, text in _strings(getattr(endpoint, name)))


def _prose(endpoint: Endpoint) -> dict[str, str]:
    texts = {"description": endpoint.description, "semantic/intent": endpoint.semantic.intent}
    texts |= {"semantic/outcome": endpoint.semantic.outcome, "semantic/actor": endpoint.semantic.actor}
    return texts | {f"errors/{at}": f"{one.name}: {one.description or ''}" for at, one in enumerate(endpoint.errors)}


def _check_texts(endpoint: Endpoint, catalog: Catalog) -> Iterator[Diagnostic]:
    for name, text in _prose(endpoint).items():
        if len(text) > LONGEST_TEXT or not text.isprintable():
            message = f"a text must be printable and have at most {LONGEST_TEXT} characters; this has {len(text)}"
            yield Diagnostic("", "error", message, None, f"/endpoint/{name}")
    for name in ("input_schema", "output_schema"):
        for key, text in _strings(getattr(endpoint, name)):
            if len(text) > (200 if key else 2_000) or (key and not text.isprintable()):
                message = f"a text is too long or not printable: {brief(text)}"
                yield Diagnostic("", "error", message, None, f"/endpoint/{name}")
            for rule, message, advice, _ in security.examine_text(text, f"/{name}", strict=False):
                if rule.id in _UNSAFE:
                    yield Diagnostic(rule.id, "error", f"a text {message}", None, f"/endpoint/{name}", advice)
    for rule, message, advice, _ in security.examine_text(endpoint.semantic.actor, "/semantic/actor", strict=True):
        if rule.id in _UNSAFE:
            yield Diagnostic(rule.id, "error", f"the actor {message}", None, "/endpoint/semantic/actor", advice)
    for finding in security.check(Declared(endpoint, "/endpoint", {}), LintContext(catalog=catalog, agis=False)):
        if finding.rule in _UNSAFE:
            yield finding


def _strings(value: Any) -> Iterator[tuple[bool, str]]:
    """Yield every string of a schema, names and values of any keyword: each may be published. True for names."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield False, part
        elif isinstance(part, dict):
            yield from ((True, name) for name in part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _refuse(code: str, findings: list[Diagnostic]) -> Refused:
    """Refuse with 400, with every finding and its place in the definition."""
    listed = [{"field": one.pointer.removeprefix("/endpoint"), "message": _say(one)} for one in findings[:10]]
    return Refused(status.BAD_REQUEST, code, listed[0]["message"], {**listed[0], "violations": listed})


def _say(finding: Diagnostic) -> str:
    message = finding.message.rstrip(".")
    return f"{message[:1].upper()}{message[1:]}. {finding.help}".strip()[:300]
