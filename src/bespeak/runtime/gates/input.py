"""400 and 422: the input is not JSON, or breaks the endpoint's input schema. Envelopes are opened here (core 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from bespeak.contract.schema.validation import Violation, refuse_input
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.header_values import is_session_id, is_task_id
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import HINTS
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.route import Route
from bespeak.text.reading.json_data import check_keys
from bespeak.text.source.pointer import pointer

_logger = logging.getLogger(__name__)

_IDS: Final[tuple[tuple[str, str, Callable[[str], bool]], ...]] = (
    ("task_id", names.TASK_ID, is_task_id),
    ("session_id", names.SESSION_ID, is_session_id),
)
_SHARED: Final = ("context", "task_id", "session_id")


def open_envelope(
    call: RoutedCall, envelope: Mapping[str, Any], parameters: dict[str, Any] | None = None
) -> Refused | None:
    """Take over what an envelope says beside its parameters, or refuse it."""
    # Headers win over the envelope; core 9 wants a difference to be logged. Built-in methods whose own parameters have
    # these names find them in `parameters`.
    headers = call.request.headers
    added = {}
    for member, header, is_valid in _IDS:
        given = envelope.get(member)
        if given is None:
            continue
        if not isinstance(given, str) or not is_valid(given):
            message = f"`{member}` in the body is not valid as the header {header.title().replace('Id', 'ID')}."
            return Refused(status.BAD_REQUEST, f"invalid-{header}", message, {"field": f"/{member}"})
        if header not in headers:
            added[header] = given
        elif headers[header] != given:
            _logger.warning("%s in a body differs from the header, which counts: %s", member, call.route.endpoint)
    if added:
        # Requests may share their headers, so they are never changed.
        call.request = msgspec.structs.replace(call.request, headers={**headers, **added})
    if parameters is not None and call.route.builtin:
        declared = call.route.endpoint.input_schema["properties"]
        for member in _SHARED:
            if member in declared and envelope.get(member) is not None:
                parameters.setdefault(member, envelope[member])
    return None


ENVELOPE: Final = frozenset({"method", "task_id", "session_id", "parameters", "context"})
"""Core 5.2: a body with only these keys, and an object under `parameters`, is an envelope around the input."""

# Of nearly all requests; a missing one means JSON.
_KNOWN_TYPES: Final = frozenset({None, names.MEDIA_AGTP, names.MEDIA_JSON})
SEMANTIC: Final = "semantic"  # member of a body with a semantic envelope (IoA 9, Figure 8)

_KEY_MISSING: Final = Refused(
    status.BAD_REQUEST,
    "idempotency-key-required",
    "PUT is EXECUTE with an idempotency_key: send an Idempotency-Key, or idempotency_key in the body.",
)

_decode = msgspec.json.Decoder().decode


Coerce = Callable[[RoutedCall, Mapping[str, str], bool], "Mapping[str, Any] | Refused"]
"""Makes values of the texts of a query, or of a path if the last argument is True."""


def coerce_texts(call: RoutedCall, texts: Mapping[str, str], _: bool) -> Mapping[str, Any] | Refused:
    coercions = call.route.coercions
    return {name: coercions.get(name, str)(text) for name, text in texts.items()}


def build_input_gate(
    read: Callable[[Request, RoutedCall], Any], coerce: Coerce = coerce_texts
) -> Callable[[RoutedCall], Refused | None]:
    """Build the gate around a reader of bodies and one of parameters: an extension may bring readers of its own."""

    def input_gate(call: RoutedCall) -> Refused | None:
        route = call.route
        request = call.request
        value = read(request, call)
        if type(value) is Refused:
            return value
        envelope, inner = value, value.get("parameters")
        unwrapped = inner if type(inner) is dict and value.keys() <= ENVELOPE else None
        if unwrapped is not None and not route.has_parameters_field:
            refused = open_envelope(call, envelope, unwrapped)
            if refused is not None:
                return refused
            value, unwrapped = unwrapped, None
        if call.captures is not None or request.query or call.preset:
            try:
                refused = _merge(call, route, value, coerce)
            except UnicodeDecodeError:
                return Refused(status.BAD_REQUEST, "invalid-query", "The query string does not decode to UTF-8 text.")
            if refused is not None:
                return refused
        try:
            if route.input.is_valid(value):
                call.input = value
                return None if unwrapped is None or not route.builtin else open_envelope(call, envelope)
            if unwrapped is not None and route.input.is_valid(unwrapped):
                call.input = unwrapped
                return open_envelope(call, envelope)
            return refuse_input(call.method, call.path, route.input.violations(value))
        except ValueError as error:  # nested too deeply for the validator, or text that is not valid Unicode
            return _bad_body(f"The body cannot be validated: {error}.")

    return input_gate


def step_input_gate(call: RoutedCall) -> Refused | None:
    try:
        if call.route.input.is_valid(call.input):
            return None
        return refuse_input(call.method, call.path, call.route.input.violations(call.input))
    except ValueError as error:
        return _bad_body(f"The input cannot be validated: {error}.")


def read_body(request: Request, _: RoutedCall) -> Any:
    """Decode the body to an object, which is empty without a body, or return the refusal."""
    body, headers = request.body, request.headers
    if not body:
        return {}
    if headers.get("content-type") not in _KNOWN_TYPES or "content-encoding" in headers or request.reads:
        refused = _check_content(request)
        if refused is not None:
            return refused
    try:
        value = _decode(body)
        if type(value) is not dict:
            kind = {list: "array", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
            return _bad_body(f"The body is a JSON {kind}; the input of an endpoint must be an object.")
        if body.count(b":") != len(value):  # with as many colons as keys, none is repeated
            check_keys(body, value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _bad_body(f"The body is not JSON: {error}.")
    return value


def _check_content(request: Request) -> Refused | None:
    """Refuse a body that this server would read differently from what its headers say."""
    content_type = request.headers.get("content-type", names.MEDIA_JSON)
    encoding = request.headers.get("content-encoding", "identity")
    charset = names.foreign_charset(content_type)
    if not names.is_json(content_type):
        return _bad_body(f"The body is {content_type[:80]!r}; send JSON with Content-Type: application/json.")
    if charset is not None:
        return _bad_body(f"The body is in the charset {charset[:40]!r}; send JSON in UTF-8.")
    if encoding.strip().lower() != "identity":
        return _bad_body(f"The body has the Content-Encoding {encoding[:40]!r}; send it without compression.")
    if request.reads:
        # RFC 9110 9.3.1: content in a GET has no meaning, and caches ignore it.
        return _bad_body("A GET has no body; send the input in the query, or send a POST.")
    return None


def _merge(call: RoutedCall, route: Route, value: dict[str, Any], coerce: Coerce) -> Refused | None:
    """Add path and query parameters. The body wins over the query (5.5); it must agree with the path."""
    refused = _merge_query(call, route, value, coerce) if call.request.query else None
    if refused is not None:
        return refused
    for name, preset in (call.preset or {}).items():
        if preset is None and name not in value:
            key = call.request.headers.get(names.IDEMPOTENCY_KEY)
            if key is None:
                return _KEY_MISSING
            if name in route.endpoint.input_schema.get("properties", ()):
                value[name] = key
        else:
            value.setdefault(name, preset)
    placed = coerce(call, call.captures, True) if call.captures else {}
    if isinstance(placed, Refused):
        return placed
    for name, captured in placed.items():
        if value.setdefault(name, captured) != captured:
            message = f"the path says {captured!r} for {name!r}, but the rest of the request has another value"
            return refuse_input(call.method, call.path, [Violation(pointer((name,)), "", "path", message)])
    return None


def _merge_query(call: RoutedCall, route: Route, value: dict[str, Any], coerce: Coerce) -> Refused | None:
    parameters = _query_parameters(call.request.query)
    if route.shaping is not None and not HINTS.isdisjoint(parameters):
        hints = route.shaping.take(parameters)
        if isinstance(hints, Refused):
            return hints
        call.hints = hints
    given = coerce(call, parameters, False)
    if isinstance(given, Refused):
        return given
    for name, one in given.items():
        value.setdefault(name, one)
    return None


def _query_parameters(query: str) -> dict[str, str]:
    """Decode the query parameters; the last of repeated keys counts (AGTP-API 5.5). A `+` is a plus (RFC 3986)."""
    parameters = {}
    for part in query.split("&"):
        if part:
            name, _, text = part.partition("=")
            parameters[unquote(name, errors="strict")] = unquote(text, errors="strict")
    return parameters


input_gate: Final = build_input_gate(read_body)  # assembles the input from path, query and body, and validates it


def _bad_body(message: str) -> Refused:
    return Refused(status.BAD_REQUEST, "invalid-body", message)
