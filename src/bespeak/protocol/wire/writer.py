"""From values to bytes. Content-Length is always written, and only here (core 1)."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Final

from bespeak.errors import LocalProtocolError
from bespeak.protocol.wire import abnf

Pairs = Collection[tuple[str, str]]
"""Headers as pairs of name and value."""

_NO_CONTENT: Final = 204
_NOT_MODIFIED: Final = 304
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})


def encode_request(method: str, target: str, headers: Pairs = (), body: bytes = b"") -> bytes:
    """Encode a request, with all three tokens on its first line."""
    line = f"AGTP/1.0 {method} {target}"
    match = abnf.REQUEST_LINE.fullmatch(line) if line.isascii() else None
    if match is None or match.groups() != (method, target) or "#" in line:
        raise LocalProtocolError(
            f"{method[:40]!a} {target[:80]!a} is not valid on a request line; percent-encode the target."
        )
    return b"%b\r\n%bContent-Length: %d\r\n\r\n%b" % (line.encode(), _encode_headers(headers), len(body), body)


def encode_response(status: int, reason: str, block: bytes = b"", headers: Pairs = (), body: bytes = b"") -> bytes:
    """Encode a response. `block` holds header lines that are already encoded and trusted."""
    if status in (_NO_CONTENT, _NOT_MODIFIED):
        body = b""
        if status == _NO_CONTENT:
            # Core 2.4: 204 MUST NOT carry Content-Type.
            block = b"".join(line for line in block.splitlines(True) if not line.lower().startswith(b"content-type:"))
            headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
    lines = _encode_headers(headers) if headers else b""
    return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (_status_line(status, reason), block, lines, len(body), body)


def encode_ok(block: bytes, headers: Pairs, body: bytes) -> bytes:
    """Encode a response with status 200, the most frequent; the result is that of `encode_response`."""
    lines = ""
    for name, value in headers:
        if not value.isprintable():
            return encode_response(200, "OK", block, headers, body)
        lines += f"{_checked_name(name)}: {value}\r\n"
    return b"".join((b"AGTP/1.0 200 OK\r\n", block, f"{lines}Content-Length: {len(body)}\r\n\r\n".encode(), body))


def _encode_headers(headers: Pairs) -> bytes:
    lines = []
    for name, value in headers:
        # isprintable is a fast path: tabs and rare characters are left to the pattern.
        if not value.isprintable() and abnf.FIELD_VALUE.fullmatch(value) is None:
            raise LocalProtocolError(f"The value of header {name[:40]!a} contains a control character: {value[:60]!a}.")
        lines.append(f"{_checked_name(name)}: {value}\r\n")
    try:
        return "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"A header value is not valid Unicode: {error.object[error.start]!a}.") from None


@functools.lru_cache(maxsize=512)
def _checked_name(name: str) -> str:
    if abnf.FIELD_NAME.fullmatch(name) is None:
        raise LocalProtocolError(f"{name[:60]!a} is not a valid header name.")
    if name.lower() in _FRAMING:
        raise LocalProtocolError(f"{name} is written with the message; omit it.")
    return name


@functools.lru_cache(maxsize=128)
def _status_line(status: int, reason: str) -> bytes:
    line = f"AGTP/1.0 {status} {reason}"
    if abnf.STATUS_LINE.fullmatch(line) is None:
        raise LocalProtocolError(f"{line[:80]!a} is not a valid status line.")
    return f"{line}\r\n".encode()
