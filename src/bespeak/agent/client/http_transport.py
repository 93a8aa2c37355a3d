"""HTTP transport of the client: requests of capabilities, at the allowed rate (ai-discovery 3.6), errors as AGTP's."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from bespeak.agent.client.sender import is_wire_logged, log_received, log_sent
from bespeak.agent.discovery.fetcher import MOST_REDIRECTS, REDIRECTS, BodyError, read_body
from bespeak.agent.discovery.readers import PLACEHOLDER, Capability, Placement, may_name_header
from bespeak.contract.http_route import encode_pairs, in_cookie, in_header, in_path, pairs, unusable
from bespeak.contract.schema.validation import Violation
from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol import address_guard as web
from bespeak.protocol import status as codes
from bespeak.protocol.exchange.headers import (
    CONTINUATION_TOKEN,
    FORM,
    MEDIA_JSON,
    MEDIA_NDJSON,
    essence,
    is_header_name,
    is_json,
)
from bespeak.protocol.wire.connection import Pairs
from bespeak.protocol.wire.messages import RESPONSE_LIMITS, ResponseMessage
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.json_data import decode_json
from bespeak.text.source.pointer import child

if TYPE_CHECKING:
    import httpx


_OWN: Final = frozenset({"type", "title", "status", "detail"})
_TOLD: Final = _OWN | {"code", "agtp_status", "task_id", "instance"}
_AGTP_STATUS: Final = "agtp-status"
_LINES: Final = f"{MEDIA_NDJSON}, {MEDIA_JSON};q=0.5"
_MINUTE: Final = 60.0


def agtp_status(status: int, headers: Mapping[str, str]) -> int:
    """Return the AGTP status of a response: the one in its header, else the HTTP status."""
    said = headers.get(_AGTP_STATUS, "")
    number = int(said) if len(said) == 3 and said.isascii() and said.isdigit() else 0
    return number if number in codes.REASONS else status


def error_body(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Convert the body of a refusal into AGTP's form. Other bodies are returned unchanged."""
    if essence(headers.get("content-type", "")) != "application/problem+json":
        return body
    try:
        told = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    return body if not isinstance(told, dict) else msgspec.json.encode(_error(status, told))


def _error(status: int, told: Mapping[str, Any]) -> dict[str, Any]:
    code, detail = told.get("code"), told.get("detail")
    message = detail if isinstance(detail, str) else told.get("title")
    kind = told.get("type")
    if not isinstance(code, str) or not code:
        # Other services identify a problem by its type, `https://api.example/problems/out-of-credit`.
        named = kind.rstrip("/").rpartition("/")[2] if isinstance(kind, str) and kind != "about:blank" else ""
        code = named or codes.CODES.get(status, f"status-{status}")
    error: dict[str, Any] = {"code": code, "message": message if isinstance(message, str) else ""}
    for name, value in told.items():
        plain = name.removeprefix("error_")
        if name not in _TOLD:
            error[plain if plain in _OWN else name] = value
    task_id = told.get("task_id")
    return {"error": error} if task_id is None else {"error": error, "task_id": task_id}


class HttpExchanger:
    """Sends requests to absolute addresses. Follows redirects only for safe methods and only on the same host."""

    def __init__(
        self, transport: web.PinnedTransport, *, insecure: bool = False, most: int = RESPONSE_LIMITS.body
    ) -> None:
        self._transport = transport
        self._insecure = insecure
        self._most = most

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return its response. Raises OSError or RemoteProtocolError if there is none."""
        address = web.parse_web_address(target, insecure=self._insecure)
        if isinstance(address, web.AddressFault):
            raise LocalProtocolError(f"{address.message}.")
        followed = 0
        while True:
            message = await self.exchange(method, address, dict(headers), body, retry=retry)
            location = message.headers.get("location")
            if method not in ("GET", "HEAD") or message.status not in REDIRECTS or location is None:
                return message
            followed += 1
            onward = web.resolve_address(location, address, insecure=self._insecure)
            if isinstance(onward, web.AddressFault) or onward.origin != address.origin or followed > MOST_REDIRECTS:
                return message
            address = onward

    async def exchange(
        self, method: str, address: web.WebAddress, headers: Mapping[str, str], body: bytes, *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return its response, whatever the status."""
        import httpx  # noqa: PLC0415 - slow to load, and a client of AGTP does without

        given = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "bespeak", **headers}
        try:
            async with self._answer(method, address, given, body) as response:
                return _message(response, await read_body(response, self._most) if method != "HEAD" else b"")
        except httpx.TransportError as error:
            if not (retry and isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)):
                raise _translated(error) from error
        # The server may have closed an idle connection while the request was on its way.
        return await self.exchange(method, address, headers, body)

    async def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b""
    ) -> AsyncGenerator[ResponseMessage]:
        """Yield the one response: only an AGTP service says what its streams look like."""
        yield await self.request(method, target, headers, body)

    async def lines(
        self, method: str, address: web.WebAddress, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[ResponseMessage]:
        """Ask for lines of JSON; yield a message for each, or the whole response if it has another form."""
        import httpx  # noqa: PLC0415 - as above

        given = {"Accept-Encoding": "identity", "User-Agent": "bespeak", **headers, "Accept": _LINES}
        try:
            async with self._answer(method, address, given, body) as response:
                if essence(response.headers.get("content-type", "")) != MEDIA_NDJSON:
                    yield _message(response, await read_body(response, self._most))
                    return
                async with aclosing(split_lines(response.aiter_raw(), self._most)) as lines:
                    async for line in lines:
                        yield _message(response, line)
        except httpx.TransportError as error:
            raise _translated(error) from error

    async def close(self) -> None:
        await self._transport.close()

    @asynccontextmanager
    async def _answer(
        self, method: str, address: web.WebAddress, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[httpx.Response]:
        """Send a request, and close its response after the block, which reads the body."""
        if is_wire_logged():
            framing = [("content-length", str(len(body)))] if body or method == "POST" else []
            host = ("Host", str(address.origin).partition("://")[2])
            log_sent(f"{method} {address.target} HTTP/1.1", [host, *headers.items(), *framing], body)
        response = await self._transport.send(method, address, headers, body)
        try:
            yield response
        except BodyError as error:
            raise RemoteProtocolError(f"The answer of {address.origin} cannot be read: {error}.") from error
        finally:
            await response.aclose()


def _message(response: httpx.Response, body: bytes) -> ResponseMessage:
    """Return a response, or one line of it, as a message, and log it."""
    headers = {name.lower(): text for name, text in response.headers.items()}
    reason = response.reason_phrase or codes.REASONS.get(response.status_code, "")
    message = ResponseMessage(response.status_code, reason, headers, body)
    log_received("HTTP/1.1", message)
    return message


class FaceExchanger:
    """Sends `BOOK /room` as POST `/room:book`; if the service knows only AGIS 10.1, with the method in a header."""

    def __init__(self, http: HttpExchanger, origin: web.Origin, prefix: str = "", *, by_header: bool = False) -> None:
        self._http = http
        self._origin = origin
        self._prefix = prefix
        self._by_header = by_header

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request and return the response with AGTP's status and `error` object."""
        address, given = self._place(method, target, headers)
        return in_agtp_terms(await self._http.exchange("POST", address, given, body, retry=retry))

    async def stream(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b""
    ) -> AsyncGenerator[ResponseMessage]:
        """Ask for a stream, and yield its items as messages of AGTP."""
        address, given = self._place(method, target, headers)
        async with aclosing(self._http.lines("POST", address, given, body)) as messages:
            async for message in messages:
                if essence(message.headers.get("content-type", "")) != MEDIA_NDJSON:
                    yield in_agtp_terms(message)
                    return
                told = read_event(message)
                yield told
                if CONTINUATION_TOKEN.lower() not in told.headers:
                    return
        raise RemoteProtocolError("The stream ended without its last line, so items may be missing.")

    def _place(self, method: str, target: str, headers: Pairs) -> tuple[web.WebAddress, dict[str, str]]:
        path, mark, query = target.partition("?")
        given = dict(headers)
        if self._by_header or not (method.isascii() and method.isalpha()):
            given["X-AGIS-Method"] = method
        else:
            path = f"{path}:{method.lower()}"
        return web.WebAddress(self._origin, f"{self._prefix}{path}{mark}{query}"), given

    async def close(self) -> None:
        await self._http.close()


async def split_lines(chunks: AsyncIterable[bytes], most: int) -> AsyncGenerator[bytes]:
    """Split chunks into lines of at most `most` bytes. Raises BodyError for a longer one."""
    begun = bytearray()
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            begun += line
            if len(begun) > most:
                break
            if begun.strip():
                yield bytes(begun)
            begun.clear()
        begun += rest
        if len(begun) > most:
            raise BodyError("size", f"a line has more than {most} bytes")


def read_event(line: ResponseMessage) -> ResponseMessage:
    """Convert a line of a stream into a message. Raises RemoteProtocolError for one that is not an event."""
    try:
        event = decode_json(line.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        event = None
    match event:
        case {"item": item}:
            headers = {**line.headers, CONTINUATION_TOKEN.lower(): "more"}
            return ResponseMessage(codes.OK, "OK", headers, msgspec.json.encode({"items": [item]}))
        case {"end": {}}:
            return ResponseMessage(codes.OK, "OK", line.headers, b'{"items":[]}')
        case {"error": {"status": int(number)} as problem}:
            status = agtp_status(number, {_AGTP_STATUS: str(problem.get("agtp_status", ""))})
            body = msgspec.json.encode(_error(status, problem))
            return ResponseMessage(status, codes.REASONS.get(status, ""), line.headers, body)
    raise RemoteProtocolError(f"A line of the stream is not an item, an end or an error: {brief(line.body[:80])}.")


def in_agtp_terms(message: ResponseMessage) -> ResponseMessage:
    """Convert an HTTP response into an AGTP response."""
    number = agtp_status(message.status, message.headers)
    body = message.body if codes.is_success(number) else error_body(number, message.headers, message.body)
    return ResponseMessage(number, codes.REASONS.get(number, message.reason), message.headers, body)


def _translated(error: Exception) -> Exception:
    import httpx  # noqa: PLC0415 - as above

    if isinstance(error, httpx.LocalProtocolError):
        return LocalProtocolError(f"The request cannot be sent: {error}.")
    if isinstance(error, httpx.RemoteProtocolError):
        return RemoteProtocolError(f"{error}.")
    for kind in (ssl.SSLError, ConnectionRefusedError):
        if (behind := web.find_cause(error, kind)) is not None:
            return behind
    return ConnectionResetError(str(error) or type(error).__name__)


@dataclass(slots=True)
class CapabilityRequest:
    method: str
    address: web.WebAddress
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class _Parts:
    path: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)  # names and encoded values
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    whole: Any = msgspec.UNSET  # content of a body that is one member of the input
    faults: list[Violation] = field(default_factory=list)


def build_request(
    capability: Capability, given: Mapping[str, Any], more_query: Mapping[str, str] | None = None
) -> CapabilityRequest | list[Violation]:
    """Build the request for a valid input, or return why it cannot be sent. `more_query` is appended to the query."""
    parts = _Parts()
    for name, value in given.items():
        if value is not None or name in capability.placeholders:
            _put(parts, capability.place_of(name), value, child("", name))
    parts.faults += [
        Violation("", "", "required", f'"{name}" is a required property')
        for name in capability.placeholders
        if name not in parts.path
    ]
    headers = dict(parts.headers)
    if parts.cookies:
        headers["Cookie"] = "; ".join(parts.cookies)
    body, media_type = _body(parts, capability.media_type, capability.form_styles)
    if media_type is not None:
        headers["Content-Type"] = media_type
    if parts.faults:
        return parts.faults
    parts.query += [(name, quote(text, safe="")) for name, text in (more_query or {}).items()]
    target = PLACEHOLDER.sub(lambda match: parts.path[match[1]], capability.target)
    if parts.query:
        target += ("&" if "?" in target else "?") + encode_pairs(parts.query)
    return CapabilityRequest(capability.method, web.WebAddress(capability.origin, target), headers, body)


def _put(parts: _Parts, placement: Placement, value: Any, at: str) -> None:
    name = placement.name
    match placement.place:
        case "body":
            parts.body[name] = value
        case "whole-body":
            parts.whole = value
        case "query":
            parts.query += pairs(name, value, placement.style, at, parts.faults)
        case "path":
            parts.path[name] = in_path(value, at, parts.faults)
        case "header":
            if may_name_header(name):
                parts.headers[name] = in_header(value, at, parts.faults)
            else:
                message = f"the document sends it as header {brief(name)}, which is not allowed"
                parts.faults.append(unusable(at, message))
        case "cookie":
            if is_header_name(name):
                parts.cookies.append(f"{name}={in_cookie(value, at, parts.faults)}")
            else:
                parts.faults.append(unusable(at, f"the document sends it as cookie {brief(name)}, which is not valid"))


def _body(parts: _Parts, media_type: str, styles: Mapping[str, str]) -> tuple[bytes, str | None]:
    content = parts.whole if parts.whole is not msgspec.UNSET else parts.body or msgspec.UNSET
    if content is msgspec.UNSET:
        return b"", None
    kind = essence(media_type)
    if kind == FORM and isinstance(content, dict):
        fields = [(name, value, styles.get(name, "repeat"), child("", name)) for name, value in content.items()]
        return encode_pairs(chain.from_iterable(pairs(*one, parts.faults) for one in fields)).encode(), media_type
    if is_json(kind):
        return msgspec.json.encode(content), media_type
    if kind in ("", "*/*"):
        return msgspec.json.encode(content), MEDIA_JSON
    if isinstance(content, str) and kind.startswith("text/"):
        return content.encode(), media_type
    parts.faults.append(unusable("", f"the client cannot send a body of type {brief(media_type)}"))
    return b"", None


class RequestPace:
    """Sliding-window rate limiter over one minute."""

    def __init__(
        self,
        per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._turns: deque[float] = deque()  # start times of the requests of the last minute, and of reserved ones

    async def turn(self, longest: float) -> float:
        """Wait for the next slot and return 0. If it is more than `longest` seconds away, return that delay at once."""
        now = self._clock()
        while self._turns and self._turns[0] <= now - _MINUTE:
            self._turns.popleft()
        wait = self._turns[-self.per_minute] + _MINUTE - now if len(self._turns) >= self.per_minute else 0.0
        if wait > longest:
            return wait
        self._turns.append(now + wait)
        if wait > 0:
            await self._sleep(wait)
        return 0.0
