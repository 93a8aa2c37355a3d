"""Responses of a call: the output, the declared errors, and the refusals that all endpoints share."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import RateLimits
from bespeak.contract.policy import Policies
from bespeak.contract.schema.file_schema import is_file
from bespeak.contract.schema.subschemas import Parts, references, transplant
from bespeak.protocol.exchange.headers import MEDIA_JSON, MEDIA_NDJSON, MEDIA_PROBLEM, MEDIA_SSE, STREAM_REQUIRED
from bespeak.protocol.exchange.token_hints import LIST
from bespeak.protocol.status import REASONS, UNPROCESSABLE
from bespeak.text.identifiers import reached, unused
from bespeak.text.source.pointer import child

_NO_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def component_name(text: str) -> str:
    """Convert a text to a component key, which holds only letters, digits, `.`, `-` and `_`."""
    return _NO_COMPONENT.sub("_", text).strip("_") or "schema"


def type_name(operation_id: str) -> str:
    """Convert an operation id to the first part of a type name: `BookRoom`."""
    return "".join(word[0].upper() + word[1:] for word in operation_id.split("_") if word)


PLACE: Final = "#/components/schemas/"

_DEFINITIONS: Final = "$defs"
_SORTED: Final = msgspec.json.Encoder(order="sorted")

_NAMED: Final = b'nchor":'  # bytes that occur in the text of every schema with an anchor
_Identity = bytes  # identity of a definition: equal ones have the same meaning, including everything they refer to


class SchemaComponents:
    """Collects `components.schemas`. In OpenAPI `#` is the whole document, so every reference is rewritten."""

    def __init__(self, reserved: Mapping[str, Any]) -> None:
        """Start with `reserved`: schemas outside the contract, whose names stay theirs."""
        self.schemas: dict[str, Any] = dict(reserved)
        self._defined: dict[tuple[str, _Identity], str] = {}
        self._leads: dict[bytes, frozenset[str | None]] = {}  # what a definition refers to, by its text

    def reserve(self, name: str) -> str:
        """Reserve a name for the schema of an endpoint, before definitions take theirs."""
        free = unused(name, self.schemas, "")
        self.schemas[free] = {}
        return free

    def add(self, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store a schema under a reserved name; return it as stored."""
        definitions = schema.get(_DEFINITIONS)
        definitions = definitions if isinstance(definitions, Mapping) else {}
        new: dict[str, str] = {}
        places: dict[str, str] = {}
        text = _SORTED.encode(schema) if definitions else b""
        for key, identity in self._identities(text, definitions):
            if (known := self._defined.get((key, identity))) is None:
                known = new[key] = self._defined[key, identity] = self._name(name, key)
            places[key] = known

        def refer(parts: Parts) -> str:
            if len(parts) > 1 and parts[0] == _DEFINITIONS and parts[1] in places:
                return _reference(places[parts[1]], parts[2:])
            return _reference(name, parts)

        if definitions and _NAMED not in text:
            # Definitions that are already stored are not copied again; only an anchor could refer into them.
            schema = {**schema, _DEFINITIONS: {key: definitions[key] for key in new}}
        moved = transplant(schema, refer)
        definitions = moved.pop(_DEFINITIONS, {})
        for key, known in new.items():
            self.schemas[known] = definitions[key]
        self.schemas[name] = moved
        return moved

    def _identities(self, text: bytes, definitions: Mapping[str, Any]) -> Iterable[tuple[str, _Identity]]:
        """Yield each definition of a schema with its identity; `text` is the whole schema."""
        texts = {key: _SORTED.encode(inner) for key, inner in definitions.items()}
        digests = {key: hashlib.sha256(text).digest() for key, text in texts.items()}
        leads = {key: self._lead(texts[key], definitions[key]).intersection((*definitions, None)) for key in texts}
        for key in definitions:
            start: tuple[str | None] = (key,)
            names = reached(start, lambda name: leads[name] if name is not None else ())
            if None in names or _NAMED in text:
                # It may refer to any place in the schema, so it has the same meaning only in the same schema.
                yield key, hashlib.sha256(text).digest()
            else:
                yield key, b"".join(name.encode() + digests[name] for name in sorted(filter(None, names)))

    def _lead(self, text: bytes, definition: Any) -> frozenset[str | None]:
        """Return the definitions that one refers to; None for any other place in the schema."""
        if (known := self._leads.get(text)) is None:
            known = self._leads[text] = frozenset(
                parts[1] if len(parts) > 1 and parts[0] == _DEFINITIONS else None
                for parts in references({_DEFINITIONS: {"": definition}})
            )
        return known

    def _name(self, owner: str, key: str) -> str:
        plain = component_name(key)
        name = plain if plain not in self.schemas else unused(f"{owner}.{plain}", self.schemas, "")
        self.schemas[name] = {}
        return name


def reference(name: str) -> dict[str, str]:
    return {"$ref": PLACE + name}


def _reference(name: str, parts: Parts) -> str:
    at = PLACE + name
    for part in parts:
        at = child(at, quote(part, safe="/~!$&'()*+,;=:@-._"))
    return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Settings outside the contract that apply to all endpoints."""

    modes: tuple[str, ...]  # authentication modes, as in `[auth]`
    policies: Policies
    rate_limits: RateLimits = field(default_factory=RateLimits)
    knows_agents: bool = False  # True if agents may have documents, and so be suspended or revoked
    keeps_state: bool = True  # True if idempotency keys, sessions and confirmations have a store
    keys_required: bool = False  # True if irreversible calls need an Idempotency-Key
    catalog_warnings: Mapping[str, str] = field(default_factory=dict)  # by method, if the catalog deprecates it

    @property
    def is_open(self) -> bool:
        """True if headers are accepted without proof."""
        return self.modes == ("open",)

    def needs_authority(self, endpoint: Endpoint) -> bool:
        """Return True if an anonymous call is refused."""
        return bool(endpoint.required_scopes or self.policies.scope_required_for_invocation)

    def confirms(self, endpoint: Endpoint) -> bool:
        """Return True if a call waits for a confirmation."""
        return needs_confirmation(endpoint, self.policies)

    def takes_key(self, endpoint: Endpoint) -> bool:
        """Return True if an Idempotency-Key has an effect."""
        semantic = endpoint.semantic
        return self.keeps_state and semantic.impact != "informational" and not semantic.is_idempotent

    def needs_key(self, endpoint: Endpoint) -> bool:
        """Return True if a call without an Idempotency-Key is refused."""
        return self.keys_required and self.takes_key(endpoint) and endpoint.semantic.impact == "irreversible"


PROBLEM: Final = "Problem"
PROBLEM_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "The reason why a call was refused (RFC 9457). `code` is stable.",
    "required": ["type", "title", "status", "detail", "code", "agtp_status"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "code": {"type": "string", "description": "The stable name of the refusal."},
        "agtp_status": {"type": "integer", "description": "The AGTP status code of the refusal."},
        "task_id": {"type": "string"},
        "violations": {
            "type": "array",
            "description": "The violations of the input schema.",
            "items": {"type": "object"},
        },
    },
}

HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AGTP-Status": {
        "description": "The AGTP status, which may be more specific.",
        "required": True,
        "schema": {"type": "integer"},
    },
    "AGTP-Catalog-Warning": {
        "description": "Successor and removal of a method that the catalog has deprecated.",
        "schema": {"type": "string"},
    },
    "AGTP-Endpoint-Warning": {
        "description": "Successor and removal of a deprecated endpoint.",
        "schema": {"type": "string"},
    },
    "Cost-Estimate": {"description": "Maximum cost of the call.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {
        "description": "`true` on the answer of an earlier call with the same key.",
        "schema": {"type": "string", "const": "true"},
    },
    "Response-ID": {"description": "The server's id for this answer.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait before the next attempt.", "schema": {"type": "integer"}},
    "WWW-Authenticate": {"description": "Accepted authentication schemes.", "schema": {"type": "string"}},
}

_REFUSALS: Final[Mapping[int, tuple[str, str, tuple[str, ...]]]] = {
    400: ("BadRequest", "The request, its path or a header is malformed.", ()),
    401: ("Unauthorized", "The caller is not identified, or its credential is not valid.", ("WWW-Authenticate",)),
    402: ("TooDear", "The call costs more than Budget-Limit allows.", ()),
    403: ("Forbidden", "The caller's authority does not suffice, or the call waits for a confirmation.", ()),
    404: ("NotFound", "The resource or the confirmation does not exist.", ()),
    408: ("Expired", "The session or the confirmation has expired, or the items took too long.", ()),
    409: ("Conflict", "The key or the confirmation is in use, or was used for something else.", ("Retry-After",)),
    410: ("AgentGone", "The agent was revoked.", ()),
    413: ("TooLarge", "The body is larger than this server accepts.", ()),
    429: ("TooMany", "The caller has exceeded a rate limit.", ("Retry-After",)),
    500: ("ServerError", "The service failed; details are not disclosed.", ()),
    501: ("NotAvailable", "The call needs a confirmation, but this server has no store for confirmations.", ()),
    503: ("Unavailable", "The service is temporarily unavailable.", ("Retry-After",)),
}

_BYTES: Final = {"*/*": {"schema": {"type": "string", "format": "binary"}}}  # a file, unless JSON is asked for
_STREAMED: Final[Mapping[str, Any]] = {
    MEDIA_NDJSON: {
        "schema": {"type": "string", "description": 'Lines {"item": ...}, then {"end": ...} or {"error": ...}.'}
    },
    MEDIA_SSE: {"schema": {"type": "string", "description": "Events `item`, then one `end` or `error`."}},
}
"""The other forms of an output whose items can be streamed. OpenAPI 3.1 has no schema for the items of a sequence."""


def shared_responses() -> dict[str, Any]:
    """Build `components.responses`: the refusals that are the same for all endpoints."""
    return {
        name: {
            "description": description,
            "headers": _headers(("AGTP-Status", *headers)),
            "content": {MEDIA_PROBLEM: {"schema": reference(PROBLEM)}},
        }
        for name, description, headers in _REFUSALS.values()
    }


def responses_of(
    endpoint: Endpoint, circumstances: Circumstances, output: Mapping[str, Any], *, has_body: bool
) -> dict[str, Any]:
    found: dict[int, Any] = {
        200: {
            "description": endpoint.semantic.outcome or "The output.",
            "headers": _headers(("AGTP-Status", "Response-ID", *_advisories(endpoint, circumstances))),
            "content": {
                MEDIA_JSON: {"schema": output},
                **(_BYTES if is_file(endpoint.output_schema) else {}),
                **(_STREAMED if endpoint.streams else {}),
            },
        },
        422: _unprocessable(endpoint, circumstances),
    }
    # Unchanged items are left out of a list, which is still a 200.
    if endpoint.since is not None and LIST not in endpoint.since:
        found[304] = {"description": "Nothing has changed since then.", "headers": _headers(("AGTP-Status",))}
    for number in refusals_of(endpoint, circumstances, has_body=has_body):
        found[number] = {"$ref": f"#/components/responses/{_REFUSALS[number][0]}"}
    return {str(number): found[number] for number in sorted(found)}


def refusals_of(endpoint: Endpoint, circumstances: Circumstances, *, has_body: bool) -> Iterator[int]:
    """Return the statuses beyond 422 with which an endpoint can refuse a request that follows the document."""
    keyed, confirmed = circumstances.takes_key(endpoint), circumstances.confirms(endpoint)
    conditions = {
        400: True,
        401: True,
        402: endpoint.cost is not None,
        403: circumstances.needs_authority(endpoint)
        or confirmed
        or circumstances.knows_agents
        or not circumstances.is_open,
        404: "{" in endpoint.path or confirmed,
        408: (confirmed and circumstances.keeps_state) or endpoint.streams,
        409: circumstances.keeps_state and (keyed or confirmed),
        410: circumstances.knows_agents,
        413: has_body,
        429: bool(circumstances.rate_limits) or (confirmed and circumstances.keeps_state),
        500: True,
        501: confirmed and not circumstances.keeps_state,
        503: circumstances.keeps_state or circumstances.knows_agents or "token" in circumstances.modes,
    }
    return (number for number, given in conditions.items() if given)


def _unprocessable(endpoint: Endpoint, circumstances: Circumstances) -> dict[str, Any]:
    """Build the 422 response: the input violates its schema, or a declared error occurred."""
    codes = ["input-validation-failed", *endpoint.error_names]
    if circumstances.takes_key(endpoint):
        codes.append("idempotency-key-reused")
    if endpoint.streams:
        codes.append(STREAM_REQUIRED)
    content: dict[str, Any] = {
        "schema": {"allOf": [reference(PROBLEM), {"properties": {"code": {"enum": list(dict.fromkeys(codes))}}}]}
    }
    if endpoint.errors:
        content["examples"] = {
            error.name: {
                "summary": error.description or error.name,
                "value": {
                    "type": "about:blank",
                    "title": REASONS[UNPROCESSABLE],
                    "status": 422,
                    "detail": error.description or error.name,
                    "code": error.name,
                    "agtp_status": 422,
                },
            }
            for error in endpoint.errors
        }
    error_list = "; ".join(f"`{error.name}`: {error.description or 'declared'}" for error in endpoint.errors)
    return {
        "description": "The input violates its schema"
        + (f", or a declared error occurred. {error_list}" if error_list else "."),
        "headers": _headers(("AGTP-Status", *_advisories(endpoint, circumstances))),
        "content": {MEDIA_PROBLEM: content},
    }


def _advisories(endpoint: Endpoint, circumstances: Circumstances) -> tuple[str, ...]:
    conditions = {
        "AGTP-Endpoint-Warning": endpoint.deprecated is not None,
        "AGTP-Catalog-Warning": endpoint.method in circumstances.catalog_warnings,
        "Cost-Estimate": endpoint.cost is not None,
        "Idempotency-Replayed": circumstances.takes_key(endpoint),
    }
    return tuple(name for name, given in conditions.items() if given)


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
