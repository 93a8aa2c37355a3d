"""Between HTTP and the exchange: requests with their verb, path and headers; refusals as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from bespeak.contract.http_route import split_verb
from bespeak.faces.http.asgi import Headers, HttpResponse, Receive, Scope
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.headers import MEDIA_AGTP, HeaderBlock
from bespeak.protocol.exchange.messages import Batch, Connection, Malformed, Request, Response
from bespeak.protocol.wire.head import ONCE

_OWN: Final = frozenset({"type", "title", "status", "detail"})  # reserved by RFC 9457; details so named are renamed
_RENAMED: Final = {413: "Content Too Large", 422: "Unprocessable Content"}  # RFC 9110; not in every Python


def condition_of(error: Mapping[str, Any]) -> str | None:
    """Return the condition of core 6.2 that a 262 names, if any."""
    found = error.get("type")
    return found if isinstance(found, str) else None


def problem(agtp_status: int, body: bytes) -> tuple[int, bytes]:
    """Return the HTTP status and problem body for the AGTP refusal `body`."""
    answer = msgspec.json.decode(body) if body else {}
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    number = status.to_http(agtp_status, condition_of(error))
    return number, problem_body(number, agtp_status, error, task_id=answer.get("task_id"))


def problem_body(number: int, agtp_status: int, error: Mapping[str, Any], *, task_id: str | None = None) -> bytes:
    """Build a problem body. Clients should rely on `code`; only a status of AGTP is sent as AGTP status."""
    members: dict[str, Any] = {
        "type": "about:blank",
        "title": phrase_of(number),
        "status": number,
        "detail": error.get("message", ""),
        "code": error.get("code", ""),
    }
    if agtp_status in status.REASONS:
        members["agtp_status"] = agtp_status
    for name, value in error.items():
        if name not in ("code", "message"):
            members[f"error_{name}" if name in _OWN else name] = value
    if task_id is not None:
        members["task_id"] = task_id
    return msgspec.json.encode(members)


def phrase_of(number: int) -> str:
    if number in _RENAMED:
        return _RENAMED[number]
    try:
        return HTTPStatus(number).phrase
    except ValueError:
        return ""


AGIS_METHOD: Final = "x-agis-method"
AGIS_GRAMMAR: Final = "x-agis-grammar"
AGIS_NAMESPACE: Final = "x-agis-namespace"
API_KEY: Final = "x-api-key"
READ_HEADERS: Final = (
    *(names.AGENT_ID, names.AGENT_SIGNATURE, names.AUTHORITY_SCOPE, names.AUTHORIZATION, names.BUDGET_LIMIT),
    *(names.CONFIRMATION_ID, names.CONTRACT_SYNTHESIZED, names.DELEGATION_CHAIN, names.IDEMPOTENCY_KEY),
    *(names.METHOD_GRAMMAR, names.NEGOTIATION_ID, names.REQUEST_ID, names.SEMANTIC_PROFILE, names.SESSION_ID),
    *(names.SYNTHESIS_ID, names.TASK_ID, AGIS_METHOD, AGIS_GRAMMAR, AGIS_NAMESPACE, API_KEY),
)  # request headers read beyond those of HTTP itself
EXPOSED_HEADERS: Final = (
    *("AGTP-Status", "AGTP-API-Version", "AGTP-Catalog-Warning", "AGTP-Endpoint-Warning", "Attribution-Record"),
    *("Audit-ID", "Cost-Estimate", "Confirmation-ID", "Content-Disposition", "Content-Range", "Contract-Synthesized"),
    *("ETag", "Idempotency-Replayed", "Negotiation-ID", "RateLimit", "RateLimit-Policy", "Request-ID", "Response-ID"),
    *("Retry-After", "Semantic-Mapping", "Server-ID", "Synthesis-Id", "Task-ID"),
)  # response headers that pages of other origins may read (Access-Control-Expose-Headers)
_SINGLE: Final = ONCE | {*READ_HEADERS, "host", "origin"}  # headers of AGTP and of HTTP that may occur only once
_PLAIN: Final = "/:@!$&'()*+,;=~-._"
SCHEMES: Final = {
    "open": "Agent-ID",
    "token": "Bearer",
    "key": "Bearer",
    "mtls": "Client-Certificate",
    "signed": "Agent-Signature",
}  # authentication scheme of a 401, by mode of `[auth]`; only Bearer is a registered scheme
_names: dict[bytes, str] = {}  # cache of decoded header names: most clients send the same few
_encoded: dict[str, bytes] = {}  # cache of encoded response header names


def local_path(scope: Scope) -> str:
    """Return the path relative to the mount point, with its percent-encoding unchanged."""
    path: str = scope["path"]
    raw = scope.get("raw_path")
    encoded = raw.decode("latin-1").partition("?")[0] if raw else quote(path, safe=_PLAIN)
    root: str = (scope.get("root_path") or "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        encoded = _below(root, encoded) or quote(path[len(root) :], safe=_PLAIN) or "/"
    return encoded


def _below(root: str, encoded: str) -> str | None:
    """Remove the root, found in the decoded path, from the encoded path; return None if that is ambiguous."""
    # The slashes of a root may be percent-encoded, so counting segments would remove the wrong ones.
    end = encoded.find("/", 1)
    while end >= 0:
        if unquote(encoded[:end]) == root:
            return encoded[end:]
        end = encoded.find("/", end + 1)
    return None


def without_prefix(path: str, prefix: str) -> str:
    """Remove the public prefix from a path; a proxy may have removed it already."""
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("/", ""):
        return path[len(prefix) :] or "/"
    return path


def read_headers(pairs: Headers, most: int) -> dict[str, str] | Malformed:
    """Return the headers by name in UTF-8, AGTP's single ones at most once; AGIS prefixes the grammar header."""
    if len(pairs) > most:
        return Malformed(431, "head-too-large", f"The request has more than {most} headers.")
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = _names.get(name) or _read_name(name)
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        if key in headers:
            if key in _SINGLE:
                return Malformed(status.BAD_REQUEST, "invalid-header", f"The header {key} occurs twice.")
            text = f"{headers[key]}, {text}"
        headers[key] = text
    grammar = headers.get(AGIS_GRAMMAR)
    if grammar is not None and headers.setdefault(names.METHOD_GRAMMAR, grammar) != grammar:
        message = f"{AGIS_GRAMMAR} and {names.METHOD_GRAMMAR} name different grammars; send one of them."
        return Malformed(status.BAD_REQUEST, "invalid-header", message)
    # Only a key of this kind: the header may hold one for a gateway in front of the service.
    if API_KEY in headers and headers[API_KEY].strip().startswith("bsk_"):
        bearer = f"Bearer {headers[API_KEY].strip()}"
        if headers.setdefault(names.AUTHORIZATION, bearer) != bearer:
            message = f"{API_KEY} and authorization hold different credentials; send one of them."
            return Malformed(status.BAD_REQUEST, "invalid-header", message)
    return headers


async def read_body(receive: Receive, most: int, declared: str = "") -> bytes | Malformed:
    """Read a body of at most `most` bytes; `declared` is its Content-Length."""
    too_large = Malformed(status.CONTENT_TOO_LARGE, "content-too-large", f"The body is larger than {most} bytes.")
    if declared.isdecimal() and int(declared[:20]) > most:
        return too_large
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return Malformed(status.BAD_REQUEST, "incomplete-message", "The body is incomplete.")
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > most:
            return too_large
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_name(name: bytes) -> str:
    key = name.decode("latin-1").lower()
    if len(_names) < 512 and len(name) < 64:
        _names[name] = key
    return key


def meant(path: str, headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the AGTP path and method: from X-AGIS-Method, else from the verb in the path; None if there is neither."""
    named = headers.get(AGIS_METHOD)
    if named is None:
        return split_verb(path)
    named = named.strip()
    # AGIS 4: methods are compared without regard to case, for ASCII only: elsewhere several letters share a capital.
    return path, named.upper() if named.isascii() else named


class RequestTarget(NamedTuple):
    path: str
    method: str  # the AGTP method
    reads: bool  # True for GET and HEAD, which must not change anything
    reply: HttpResponse | None = None  # to a request that calls no endpoint, if the caller may discover


def to_request(
    target: RequestTarget,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    connection: Connection,
    *,
    streams: bool = False,
) -> Request:
    """Build the exchange request. In a query string, `+` is a space."""
    path, method, reads, reply = target
    query = query.replace("+", "%20") if "+" in query else query
    prepared = None if reply is None else Response(reply.status)
    return Request(method, path, query, headers, body, connection, reads, prepared, streams=streams)


def encode_block(block: HeaderBlock) -> Headers:
    return [_encode(name, value) for name, value in block.pairs]


def to_http(response: Response, block: Headers, challenge: bytes) -> HttpResponse:
    """Convert an AGTP response to HTTP; `block` is its encoded header block, `challenge` for a 401."""
    number, body = response.status, response.body
    headers = block + [_encode(name, value) for name, value in response.headers]
    if number in status.REASONS:
        headers.append((b"agtp-status", b"%d" % number))
    if status.is_success(number):
        number = status.to_http(number)
    elif number != status.NOT_MODIFIED:
        number, body = problem(number, body)
        headers = [pair for pair in headers if pair[0] != b"content-type"]
        headers.append((b"content-type", names.MEDIA_PROBLEM.encode()))
        if number == status.UNAUTHORIZED:
            headers.append((b"www-authenticate", challenge))
        elif number == status.METHOD_NOT_ALLOWED:
            # RFC 9110 15.5.6 requires the header; the body lists the paths of other verbs.
            headers += [] if any(name == b"allow" for name, _ in headers) else [(b"allow", b"OPTIONS")]
    if number not in (status.NO_CONTENT, status.NOT_MODIFIED):
        headers.append((b"content-length", b"%d" % len(body)))
    return HttpResponse(number, headers, body)


def to_good(response: Response, block: Headers) -> HttpResponse:
    """Convert a plain 200 response; `block` holds all headers known in advance."""
    body = response.body
    headers = block.copy()
    for name, value in response.headers:
        headers.append(_encode(name, value))
    headers.append((b"content-length", b"%d" % len(body)))
    return HttpResponse(status.OK, headers, body)


def to_part(batch: Batch, media_type: str, before: int) -> bytes:
    """Write items of a stream as lines or events, and its end; `before` is the number of items that were sent."""
    events = [(b"item", item) for item in batch.items]
    if batch.failure is not None:
        events.append((b"error", problem(batch.failure.status, batch.failure.body)[1]))
    elif batch.ended:
        events.append((b"end", b'{"items":%d}' % (before + len(batch.items))))
    form = b"event: %b\ndata: %b\n\n" if media_type == names.MEDIA_SSE else b'{"%b":%b}\n'
    return b"".join([form % event for event in events])


def _encode(name: str, value: str) -> tuple[bytes, bytes]:
    if value == MEDIA_AGTP:
        value = names.MEDIA_JSON
    if not value.isprintable():
        # A line break would begin another header.
        value = "".join(char if char.isprintable() else " " for char in value)
    encoded = _encoded.get(name)
    if encoded is None:
        encoded = _encoded[name] = name.lower().encode("latin-1")
    return encoded, value.encode()
