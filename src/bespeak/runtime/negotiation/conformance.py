"""The first four evaluations of a proposal: verb, path, semantic block and schemas (AGTP-API 10.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from bespeak.checks.lint.context import Context
from bespeak.checks.lint.registration import check_contract
from bespeak.checks.lint.rules import security
from bespeak.checks.lint.subject import Declared
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.path_syntax import Template, check_path, leaking_segment, parse_template
from bespeak.contract.policy import Policies
from bespeak.contract.schema.traps import traps
from bespeak.documents.adoption.naming import plural
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.negotiation.proposal import Proposal
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.segment import is_plain_verb, judge_segment

LONGEST_TEXT: Final = 500
"""Maximum characters of description, intent and outcome: a persistent endpoint puts them into the manifest."""
LONGEST_PATH: Final = 500
"""Maximum characters of a path."""
_LONGEST_NAME: Final = 200
_LONGEST_VALUE: Final = 2_000
"""Maximum characters of a name and of any other text in a schema."""
_MOST_SHOWN: Final = 10
_LONGEST_MESSAGE: Final = 300

# The texts of a synthesis are read by the models of other agents, so what lint only warns about is refused here.
_UNSAFE: Final = frozenset(
    rule.id for rule in (security.INJECTION, security.ROLE, security.INVISIBLE, security.BLOB, security.GAP)
)


def check_conformance(proposal: Proposal, catalog: Catalog, policies: Policies) -> Refused | None:
    """Return the refusal of the first evaluation that fails; None if the contract is valid."""
    unsafe = list(_check_schemas(proposal.endpoint))
    endpoint = _without_schemas(proposal.endpoint) if unsafe else proposal.endpoint
    findings = (
        *proposal.findings,
        *_check_length(endpoint.path),
        *check_contract(endpoint, catalog, policies),
        *unsafe,
    )
    errors = [finding for finding in findings if finding.severity == "error"]
    for prefix, refuse in _LADDER:
        found = [finding for finding in errors if finding.pointer.startswith(prefix)]
        if found:
            return refuse(endpoint, catalog, found)
    spoken = list(_check_texts(endpoint, catalog))
    code = "invalid-schema" if spoken and "_schema" in spoken[0].pointer else "invalid-semantic"
    return _refuse(code, spoken) if spoken else None


def _check_length(path: str) -> Iterator[Diagnostic]:
    if len(path) > LONGEST_PATH:
        message = f"a proposed path must have at most {LONGEST_PATH} characters; this has {len(path)}"
        yield Diagnostic("", "error", message, None, "/endpoint/path")


def _without_schemas(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with schemas that are safe to check, so that verb and path are judged first."""
    template = parse_template(endpoint.path)
    names = template.parameters if isinstance(template, Template) else ()
    plain = {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
    return replace(endpoint, input_schema=plain, output_schema={"type": "object"})


def _method_violation(endpoint: Endpoint, catalog: Catalog, findings: list[Diagnostic]) -> Refused:
    shown = endpoint.method[:64]
    details = {"method": shown, "catalog_version": catalog.version, "suggestions": catalog.near(endpoint.method)}
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
    segments = [
        segment if leaking_segment(f"/{segment}", catalog.names) is None else _name_thing(segment)
        for segment in path[1:].split("/")
    ]
    suggested = f"/{'/'.join(segments)}"
    return suggested if suggested != path and check_path(suggested, catalog.names) is None else None


def _name_thing(verb: str) -> str:
    """Return the noun of a verb, or the plural of a word that is also a noun; the verb itself if there is none."""
    if not verb.replace("-", "").replace("_", "").isalpha():
        return verb
    judged = judge_segment(verb)
    if judged is not None and judged.instead is not None:
        return judged.instead
    return verb if is_plain_verb(verb.lower(), lexicon()) else plural(verb)


def _invalid_semantic(_: Endpoint, __: Catalog, findings: list[Diagnostic]) -> Refused:
    return _refuse("invalid-semantic", findings)


def _invalid_schema(_: Endpoint, __: Catalog, findings: list[Diagnostic]) -> Refused:
    return _refuse("invalid-schema", findings)


_LADDER: Final = (
    ("/endpoint/method", _method_violation),
    ("/endpoint/path", _endpoint_violation),
    ("/endpoint/semantic", _invalid_semantic),
    ("/endpoint", _invalid_schema),
)
"""Evaluations 1 to 4 by the part of the definition that their findings point at."""


def _check_schemas(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Yield what makes a schema unsafe to compile and to search."""
    for name in ("input_schema", "output_schema"):
        schema: Any = getattr(endpoint, name)
        for trap in traps(schema) if isinstance(schema, dict) else ():
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
    errors = {f"errors/{at}": f"{one.name}: {one.description or ''}" for at, one in enumerate(endpoint.errors)}
    return texts | errors


def _check_texts(endpoint: Endpoint, catalog: Catalog) -> Iterator[Diagnostic]:
    for name, text in _prose(endpoint).items():
        if len(text) > LONGEST_TEXT or not text.isprintable():
            message = f"a text must be printable and have at most {LONGEST_TEXT} characters; this has {len(text)}"
            yield Diagnostic("", "error", message, None, f"/endpoint/{name}")
    for name in ("input_schema", "output_schema"):
        for key, text in _strings(getattr(endpoint, name)):
            if len(text) > (_LONGEST_NAME if key else _LONGEST_VALUE) or (key and not text.isprintable()):
                message = f"a text is too long or not printable: {brief(text)}"
                yield Diagnostic("", "error", message, None, f"/endpoint/{name}")
            for rule, message, advice, _ in security.examine_text(text, f"/{name}", strict=False):
                if rule.id in _UNSAFE:
                    yield Diagnostic(rule.id, "error", f"a text {message}", None, f"/endpoint/{name}", advice)
    for rule, message, advice, _ in security.examine_text(endpoint.semantic.actor, "/semantic/actor", strict=True):
        if rule.id in _UNSAFE:
            yield Diagnostic(rule.id, "error", f"the actor {message}", None, "/endpoint/semantic/actor", advice)
    for finding in security.check(Declared(endpoint, "/endpoint", {}), Context(catalog=catalog, agis=False)):
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
    listed = [
        {"field": finding.pointer.removeprefix("/endpoint"), "message": _say(finding)}
        for finding in findings[:_MOST_SHOWN]
    ]
    return Refused(status.BAD_REQUEST, code, listed[0]["message"], {**listed[0], "violations": listed})


def _say(finding: Diagnostic) -> str:
    message = finding.message.rstrip(".")
    return f"{message[:1].upper()}{message[1:]}. {finding.help}".strip()[:_LONGEST_MESSAGE]
