"""A proposal: the endpoint that an agent asks for, read from any of the bodies in use (core 4.6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.duration import read_duration
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.grammar.path_syntax import Template, parse_template
from bespeak.contract.handler import COMPOSITION_FAILED, Composition
from bespeak.contract.schema.compile import DIALECT
from bespeak.contract.semantic import Semantic
from bespeak.documents.deployment.endpoint_shape import READERS, TYPES
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import is_scope_token
from bespeak.protocol.exchange.session_id import is_session_id
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.settings import read_values
from bespeak.text.reading.table import Table
from bespeak.text.source.span import Location

_WRAPPERS: Final = ("endpoint", "proposal")
_VERBS: Final = ("method", "name", "proposed_method")
"""Names of the verb in the parameter tables, in the order of precedence."""
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
    findings: tuple[Diagnostic, ...] = ()
    """Findings of reading, with pointers that start at `/endpoint`."""
    is_brief: bool = False
    """True if the body has no semantic block, so that the server says what a call does."""
    persistent: bool = False
    duration: int | None = None
    """Seconds for which a persistent endpoint is requested; None for the server's choice."""
    scopes: tuple[str, ...] = ()
    """Authority that the proposal names."""
    session_id: str | None = None

    @cached_property
    def contract(self) -> str:
        """SHA-256 of the definition."""
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
    settings = {**{name: body[name] for name in ("session_id",) if name in body}, **holder}
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
    values["input_schema"] = _close(values["input_schema"])
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
    properties = {name: _field_schema(field) for name, field in (fields if isinstance(fields, dict) else {}).items()}
    optional = {
        name for name, field in properties.items() if isinstance(field, dict) and field.pop("required", True) is False
    }
    for name in also:
        properties.setdefault(name, {"type": "string"})
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": not closed,
    }


def _field_schema(field: Any) -> Any:
    if isinstance(field, str):
        return {"type": field} if field in TYPES else {"description": field}
    return {key: value for key, value in field.items() if key != "name"} if isinstance(field, dict) else field


def _close(schema: Any) -> Any:
    """Refuse undeclared fields unless the proposal says otherwise (AGTP-API 13.3)."""
    is_open = isinstance(schema, dict) and not {"additionalProperties", "unevaluatedProperties"} & schema.keys()
    return {**schema, "additionalProperties": False} if is_open else schema


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
