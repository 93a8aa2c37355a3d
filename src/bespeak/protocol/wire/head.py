"""Start line and headers of one message, from bytes to values, with a cache of repeated heads.

A malformed head is a Malformed, never an exception. Clients repeat their headers from request to request, so parsed
heads are cached, with the ids that change per request kept separate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from bespeak.protocol.wire import abnf
from bespeak.protocol.wire.messages import Limits, Malformed

ValueT = TypeVar("ValueT")


class Memory(dict[bytes, ValueT]):
    """`memory[text]` returns the parser's result for the text. A full cache is emptied.

    This is the rule for every cache of what callers send, whatever holds it:

    - The key has everything that the value depends on. A value with credentials is found only by a caller that sends
      these credentials: nothing is stored for bytes that arrived at another time, or under a part of the request.
    - Peers choose the texts and must not choose the size: it holds up to `most` texts of at most `longest` bytes.
    - Values are not modified, since several requests share them.
    - An entry that a stranger displaces costs others time and changes no answer. What took a proof to make, such as a
      verified token, is cached apart from what anyone can cause to be made.
    """

    __slots__ = ("_longest", "_most", "_read")

    def __init__(self, read: Callable[[bytes], ValueT], *, most: int, longest: int) -> None:
        super().__init__()
        self._read = read
        self._most = most
        self._longest = longest

    def __missing__(self, text: bytes) -> ValueT:
        value = self._read(text)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[text] = value
        return value


INVALID_REQUEST_LINE: Final = "invalid-request-line"
INVALID_STATUS_LINE: Final = "invalid-status-line"
INVALID_HEADER: Final = "invalid-header"
INVALID_CONTENT_LENGTH: Final = "invalid-content-length"
ONCE: Final = frozenset(
    {
        *("content-length", "content-type", "agent-id", "agent-signature", "authority-scope", "authorization"),
        *("budget-limit", "confirmation-id", "delegation-chain", "idempotency-key", "method-grammar", "request-id"),
        *("contract-synthesized", "negotiation-id", "session-id", "synthesis-id", "task-id"),
    }
)  # headers that may occur only once: two readers could choose different ones. Others are lists (RFC 9110 5.3).


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    method: str
    path: str
    query: str
    headers: MappingProxyType[str, str]
    length: int


class ResponseHead(msgspec.Struct, frozen=True, gc=False):
    status: int
    reason: str
    headers: Mapping[str, str]
    length: int


def parse_request_head(head: bytes, limits: Limits) -> RequestHead | Malformed:
    """Parse a request's head: all lines with their line ends, without the final blank line."""
    line = head[: head.find(b"\r\n")]
    if len(line) < limits.line - 1 and line.startswith(abnf.PREFIX):
        target = _request_lines[line]
        if not isinstance(target, Malformed):
            fields = _parse_plain_fields(head, limits)
            if fields is not None:
                return RequestHead(*target, *fields)
    return parse_any_request_head(head, limits)


def parse_any_request_head(head: bytes, limits: Limits) -> RequestHead | Malformed:
    """Parse a request's head line by line; `parse_request_head` gives the same result, with a shortcut."""
    fault = check_beginning(head, limits, INVALID_REQUEST_LINE)
    if fault is not None:
        return fault
    lines = _lines(head)
    target = _request_lines[lines[0]]
    if isinstance(target, Malformed):
        return target
    fields = _parse_fields(lines, limits)
    return fields if isinstance(fields, Malformed) else RequestHead(*target, *fields)


def parse_response_head(head: bytes, limits: Limits) -> ResponseHead | Malformed:
    fault = check_beginning(head, limits, INVALID_STATUS_LINE)
    if fault is not None:
        return fault
    lines = _lines(head)
    first = _text(lines[0], INVALID_STATUS_LINE)
    if isinstance(first, Malformed):
        return first
    match = abnf.STATUS_LINE.fullmatch(first)
    if match is None:
        wanted = "AGTP/1.0, a number of three digits and its text"
        return Malformed(400, INVALID_STATUS_LINE, f"A status line must be {wanted}; got {_shown(first)}.")
    fields = _parse_plain_fields(head, limits) or _parse_fields(lines, limits)
    return fields if isinstance(fields, Malformed) else ResponseHead(int(match[1]), match[2] or "", *fields)


def check_beginning(data: bytes | bytearray, limits: Limits, code: str) -> Malformed | None:
    """Refuse a message by its first bytes alone: another protocol, or a start line that is too long."""
    if not data.startswith(abnf.PREFIX) and not abnf.PREFIX.startswith(data):
        begun = bytes(data[:_LONGEST_FOREIGN])
        if any(len(begun) < len(start) and start.startswith(begun) for start in _FOREIGN):
            return None  # the next bytes tell which protocol it is
        foreign = next((name for start, name in _FOREIGN.items() if begun.startswith(start)), None)
        seen = next(n for n, (have, want) in enumerate(zip(data, abnf.PREFIX, strict=False), start=1) if have != want)
        begins = _shown(data[:seen].decode("latin-1"))
        return Malformed(400, code, f"A message must begin with 'AGTP/1.0 '; got {foreign or begins}.")
    if len(data) >= limits.line and data.find(b"\n", 0, limits.line) < 0:
        name = "status-line-too-long" if code == INVALID_STATUS_LINE else "request-line-too-long"
        return Malformed(400, name, f"The start line is longer than {limits.line} bytes.")
    return None


HTTP_RESPONSE: Final = "an HTTP response: use http:// for this port"
HTTP_REQUEST: Final = "an HTTP request: use the HTTP address of the server"
_HTTP_METHODS: Final = (b"GET /", b"POST /", b"PUT /", b"HEAD /", b"DELETE /", b"OPTIONS ", b"PATCH /", b"CONNECT ")
_FOREIGN: Final = {
    b"\x16\x03": "a TLS handshake: this port has no TLS",
    b"\x15\x03": "a TLS alert: this port uses TLS",
    b"HTTP/": HTTP_RESPONSE,
    **dict.fromkeys(_HTTP_METHODS, HTTP_REQUEST),
}
"""Well-known protocols by their first bytes, and what to do."""
_LONGEST_FOREIGN: Final = max(map(len, _FOREIGN))


def _lines(head: bytes) -> list[bytes]:
    """Split the head into lines without their ends, start line first. Lines end with CRLF or LF."""
    lines = head.split(b"\r\n")
    if len(lines) != head.count(b"\n") + 1:
        lines = head.replace(b"\r\n", b"\n").split(b"\n")
    return lines[:-1] or lines


def _text(line: bytes, code: str) -> str | Malformed:
    """Decode a line; refuse control characters."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return Malformed(400, code, f"Byte {error.start} of {_shown(line.decode('latin-1'))} is not UTF-8.")
    # isprintable is a fast path: tabs and rare characters are left to the pattern.
    if text.isprintable() or (control := abnf.CONTROL.search(text)) is None:
        return text
    return Malformed(400, code, f"Control character {control[0]!a} in {_shown(text)}.")


def _read_request_line(line: bytes) -> tuple[str, str, str] | Malformed:
    text = _text(line, INVALID_REQUEST_LINE)
    if isinstance(text, Malformed):
        return text
    if "#" in text:
        # AGTP-API 5.6: a `#` anywhere in the request line is malformed.
        advice = f"A request line has no fragment; remove the '#' from {_shown(text)}."
        return Malformed(400, INVALID_REQUEST_LINE, advice)
    match = abnf.REQUEST_LINE.fullmatch(text)
    if match is None:
        wanted = "AGTP/1.0 METHOD /path, with single spaces"
        return Malformed(400, INVALID_REQUEST_LINE, f"A request line must be {wanted}; got {_shown(text)}.")
    path, _, query = (match[2] or "/").partition("?")
    return match[1], path, query


def _read_field(line: bytes) -> tuple[str, str] | Malformed:
    """Parse the name, in lower case, and the value. The name is a token: no space before the colon, not folded."""
    text = _text(line, INVALID_HEADER)
    if isinstance(text, Malformed):
        return text
    name, colon, value = text.partition(":")
    if not colon or abnf.FIELD_NAME.fullmatch(name) is None:
        wanted = "'Name: value' on one line"
        return Malformed(400, INVALID_HEADER, f"A header line must be {wanted}; got {_shown(text)}.")
    return name.lower(), value.strip(" \t")


# As many request lines as a large service has endpoints.
_request_lines: Final = Memory(_read_request_line, most=16_384, longest=256)


def _parse_plain_fields(head: bytes, limits: Limits) -> tuple[MappingProxyType[str, str], int] | None:
    """Parse the headers and the body length in one pass; return None if a line needs the full parser."""
    try:
        text = head.decode()
    except UnicodeDecodeError:
        return None
    found = abnf.FIELDS.findall(text)
    if len(found) != text.count("\n") - 1 or len(found) > limits.headers or " \r\n" in text:
        return None
    headers = {name.lower(): value for name, value in found}
    if len(headers) != len(found):
        return None
    length = _length(headers, limits)
    return None if isinstance(length, Malformed) else (MappingProxyType(headers), length)


def _parse_fields(lines: list[bytes], limits: Limits) -> tuple[MappingProxyType[str, str], int] | Malformed:
    """Parse the headers and the body length; repeated lists are joined by commas (RFC 9110 5.3)."""
    if len(lines) - 1 > limits.headers:
        message = f"At most {limits.headers} header lines are allowed; got {len(lines) - 1}."
        return Malformed(400, "head-too-large", message)
    headers: dict[str, str] = {}
    for line in lines[1:]:
        field = _read_field(line)
        if isinstance(field, Malformed):
            return field
        name, value = field
        if name in headers:
            if name in ONCE:
                code = INVALID_CONTENT_LENGTH if name == "content-length" else INVALID_HEADER
                return Malformed(400, code, f"{name} occurs twice; send it once.")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    length = _length(headers, limits)
    return length if isinstance(length, Malformed) else (MappingProxyType(headers), length)


def _length(headers: Mapping[str, str], limits: Limits) -> int | Malformed:
    """Return the body length. A missing Content-Length means 0, as in the reference client (core 1)."""
    if "transfer-encoding" in headers:
        # Core 1: chunking does not exist; Content-Length is the only end-of-message signal.
        return Malformed(400, INVALID_HEADER, "AGTP has no Transfer-Encoding; send Content-Length.")
    value = headers.get("content-length")
    if value is None:
        return 0
    # RFC 9110 8.6:  Content-Length = 1*DIGIT. Fifteen digits are a petabyte.
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        wanted = "a plain number of at most 15 digits"
        return Malformed(400, INVALID_CONTENT_LENGTH, f"Content-Length must be {wanted}; got {_shown(value)}.")
    length = int(value)
    if length > limits.body:
        message = f"A body may have at most {limits.body} bytes; this one has {length}."
        return Malformed(413, "content-too-large", message)
    return length


def _shown(text: str) -> str:
    """Escape and truncate text of the peer for a message."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


MOST: Final = 512
LONGEST: Final = 2048  # number and length of cached heads: a repeated head costs one lookup
CHANGING: Final = (
    (b"\r\nTask-ID: ", "task-id"),
    (b"\r\nRequest-ID: ", "request-id"),
    (b"\r\nIdempotency-Key: ", "idempotency-key"),
)  # header lines that are cut out of a head before the lookup, spelled as clients do


class RequestHeads(Memory[RequestHead | Malformed]):
    """`heads[head]` returns the result of `parse_request_head` for the head.

    A head without ids is cached as a whole. Otherwise the rest of it is cached and the ids are added: a cached value
    never depends on bytes other than its key.
    """

    __slots__ = ("_rests",)

    def __init__(self, limits: Limits) -> None:
        super().__init__(functools.partial(parse_request_head, limits=limits), most=MOST, longest=LONGEST)
        # Lines that are cut out count too, so the rest may have fewer lines.
        fewer = msgspec.structs.replace(limits, headers=limits.headers - len(CHANGING))
        self._rests = Memory(functools.partial(parse_request_head, limits=fewer), most=MOST, longest=LONGEST)

    def __missing__(self, head: bytes) -> RequestHead | Malformed:
        # This is one function because it runs for every request with an id: calls cost as much as the work.
        rest = head
        ids: dict[str, str] = {}
        for mark, name in CHANGING:
            start = rest.find(mark)
            if start >= 0:
                end = rest.find(b"\r\n", start + 2)
                value = rest[start + len(mark) : end]
                if end < 0 or not value.isascii():
                    return self._read(head)
                ids[name] = value.decode()
                rest = rest[:start] + rest[end:]
        if not ids:
            return super().__missing__(head)
        known = self._rests[rest]
        if isinstance(known, RequestHead):
            headers = known.headers | ids
            text = "".join(ids.values())
            if len(headers) == len(known.headers) + len(ids) and text.isprintable() and " " not in text:
                return RequestHead(known.method, known.path, known.query, MappingProxyType(headers), known.length)
        return self._read(head)


@functools.lru_cache(maxsize=8)
def response_heads(limits: Limits) -> Memory[ResponseHead | Malformed]:
    return Memory(functools.partial(parse_response_head, limits=limits), most=MOST, longest=LONGEST)


@functools.lru_cache(maxsize=8)
def request_heads(limits: Limits) -> RequestHeads:
    return RequestHeads(limits)
