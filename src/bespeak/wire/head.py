"""Start line and headers of one message, from bytes to values. A malformed head is a WireFault, never an exception."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from bespeak.wire import abnf
from bespeak.wire.limits import Limits
from bespeak.wire.messages import RequestMessage, ResponseMessage, WireFault

INVALID_REQUEST_LINE: Final = "invalid-request-line"
INVALID_STATUS_LINE: Final = "invalid-status-line"
INVALID_HEADER: Final = "invalid-header"
INVALID_CONTENT_LENGTH: Final = "invalid-content-length"

ONCE: Final = frozenset(
    {"agent-id", "authority-scope", "authorization", "content-length", "idempotency-key", "session-id"}
)
"""Headers that frame a message or say who calls: two of them are two readings, so they are refused."""


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """A request up to its body."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    length: int

    def message(self, body: bytes) -> RequestMessage:
        """The request, now that its body is here."""
        return RequestMessage(self.method, self.path, self.query, self.headers, body)


class ResponseHead(msgspec.Struct, frozen=True, gc=False):
    """A response up to its body."""

    status: int
    reason: str
    headers: Mapping[str, str]
    length: int

    def message(self, body: bytes) -> ResponseMessage:
        """The response, now that its body is here."""
        return ResponseMessage(self.status, self.reason, self.headers, body)


def parse_request_head(head: bytes, limits: Limits) -> RequestHead | WireFault:
    """Read a request's head: every line with its line end, without the blank line that closes it."""
    lines = _lines(head, limits, INVALID_REQUEST_LINE)
    if isinstance(lines, WireFault):
        return lines
    if "#" in lines[0]:
        # AGTP-API 5.6: a `#` anywhere in the request line is malformed.
        advice = f"A request line has no fragment; remove the '#' from {_shown(lines[0])}."
        return WireFault(400, INVALID_REQUEST_LINE, advice)
    match = abnf.REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        wanted = "AGTP/1.0 METHOD /path, with single spaces"
        return WireFault(400, INVALID_REQUEST_LINE, f"A request line is {wanted}; this one is {_shown(lines[0])}.")
    fields = _fields(lines[1:], limits)
    if isinstance(fields, WireFault):
        return fields
    method, target = match.groups()
    path, _, query = (target or "/").partition("?")
    return RequestHead(method, path, query, *fields)


def parse_response_head(head: bytes, limits: Limits) -> ResponseHead | WireFault:
    """Read a response's head, given in the same form as to `parse_request_head`."""
    lines = _lines(head, limits, INVALID_STATUS_LINE)
    if isinstance(lines, WireFault):
        return lines
    match = abnf.STATUS_LINE.fullmatch(lines[0])
    if match is None:
        wanted = "AGTP/1.0, a number of three digits and its text"
        return WireFault(400, INVALID_STATUS_LINE, f"A status line is {wanted}; this one is {_shown(lines[0])}.")
    fields = _fields(lines[1:], limits)
    if isinstance(fields, WireFault):
        return fields
    return ResponseHead(int(match[1]), match[2] or "", *fields)


def check_beginning(data: bytes | bytearray, limits: Limits, code: str) -> WireFault | None:
    """Refuse a message by its first bytes alone: a foreign protocol, or a start line without end.

    The answer is the same for the whole head and for any beginning of it that is long enough to be wrong.
    """
    if not data.startswith(abnf.PREFIX) and not abnf.PREFIX.startswith(data):
        seen = next(n for n, (have, want) in enumerate(zip(data, abnf.PREFIX, strict=False), start=1) if have != want)
        begins = _shown(data[:seen].decode("latin-1"))
        return WireFault(400, code, f"A message begins with 'AGTP/1.0 '; this one begins with {begins}.")
    if len(data) >= limits.line and data.find(b"\n", 0, limits.line) < 0:
        name = "status-line-too-long" if code == INVALID_STATUS_LINE else "request-line-too-long"
        return WireFault(400, name, f"The start line is longer than {limits.line} bytes.")
    return None


def _lines(head: bytes, limits: Limits, code: str) -> list[str] | WireFault:
    """The lines as text, the start line first."""
    fault = check_beginning(head, limits, code)
    if fault is not None:
        return fault
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        found, in_line = f"Byte {error.start} of the head is not UTF-8.", error.start < head.find(b"\n")
        return WireFault(400, code if in_line else INVALID_HEADER, found)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    for line in lines:
        # isprintable is a fast yes: it leaves tabs and rare characters to the pattern.
        if not line.isprintable() and (control := abnf.CONTROL.search(line)) is not None:
            found = f"Control character {control[0]!a} in {_shown(line)}."
            return WireFault(400, code if line is lines[0] else INVALID_HEADER, found)
    return lines


def _fields(lines: list[str], limits: Limits) -> tuple[Mapping[str, str], int] | WireFault:
    """The headers, and how many bytes of body they announce."""
    if len(lines) > limits.headers:
        return WireFault(400, "head-too-large", f"{len(lines)} header lines; at most {limits.headers} are read.")
    headers = _headers(lines)
    if isinstance(headers, WireFault):
        return headers
    length = _length(headers, limits)
    return length if isinstance(length, WireFault) else (MappingProxyType(headers), length)


def _headers(lines: list[str]) -> dict[str, str] | WireFault:
    """Names in lower case with their values; a repeated list-valued header is joined by commas (RFC 9110 5.3)."""
    headers: dict[str, str] = {}
    for line in lines:
        raw, colon, value = line.partition(":")
        name = _field_name(raw) if colon else None
        if name is None:
            return WireFault(
                400, INVALID_HEADER, f"A header line is 'Name: value' on one line; this one is {_shown(line)}."
            )
        value = value.strip(" \t")
        if name in headers:
            if name in ONCE:
                code = INVALID_CONTENT_LENGTH if name == "content-length" else INVALID_HEADER
                return WireFault(400, code, f"{raw} stands twice; send it once.")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _length(headers: Mapping[str, str], limits: Limits) -> int | WireFault:
    """How many bytes of body follow. Absent means none, as the reference client has it (core 1)."""
    if "transfer-encoding" in headers:
        # Core 1: chunking does not exist; Content-Length is the only end-of-message signal.
        return WireFault(400, INVALID_HEADER, "AGTP has no Transfer-Encoding; send Content-Length.")
    value = headers.get("content-length")
    if value is None:
        return 0
    if abnf.CONTENT_LENGTH.fullmatch(value) is None:
        wanted = "a plain number of at most 15 digits"
        return WireFault(400, INVALID_CONTENT_LENGTH, f"Content-Length is {wanted}; this one is {_shown(value)}.")
    length = int(value)
    if length > limits.body:
        return WireFault(413, "content-too-large", f"A body of {length} bytes; at most {limits.body} are read.")
    return length


@functools.lru_cache(maxsize=512)
def _field_name(raw: str) -> str | None:
    """The name in lower case, or None if it is no token: empty, with a space before the colon, or folded."""
    return raw.lower() if abnf.FIELD_NAME.fullmatch(raw) is not None else None


def _shown(text: str) -> str:
    """Foreign text for a message: escaped and short."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")
