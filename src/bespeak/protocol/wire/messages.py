"""Results of a reader, and the size limits of messages: the drafts set none, but an open port needs them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec


class ResponseMessage(msgspec.Struct, frozen=True, gc=False):
    """One response, framing removed."""

    status: int
    reason: str
    headers: Mapping[str, str]  # headers with names in lower case, each once; read-only
    body: bytes


class Malformed(msgspec.Struct, frozen=True):
    """Bytes that are not a valid message. The connection closes: where the next one begins is unknown."""

    status: int
    code: str
    message: str


class Pause(enum.Enum):
    """The reason why a reader returns no message."""

    NEED_DATA = "need-data"  # no complete message yet
    CLOSED = "closed"  # the peer has closed, between two messages


NEED_DATA: Final = Pause.NEED_DATA
CLOSED: Final = Pause.CLOSED


class Limits(msgspec.Struct, frozen=True):
    """The largest message a reader accepts. Sizes are bytes on the wire, line ends included."""

    line: int = 8192  # maximum size of the start line
    head: int = 65536  # maximum size of start line, headers and blank line together
    headers: int = 128  # maximum number of header lines
    body: int = 1024 * 1024


DEFAULT_LIMITS: Final = Limits()  # limits for requests
RESPONSE_LIMITS: Final = Limits(head=4 * DEFAULT_LIMITS.head, body=64 * 1024 * 1024)
"""Limits for responses, which echo parts of a request and may be the manifest of ten thousand endpoints."""
