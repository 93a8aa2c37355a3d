"""What a reader gives: whole messages, or the fault that ends the connection."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec


class RequestMessage(msgspec.Struct, frozen=True, gc=False):
    """One request, framing removed and nothing else decided."""

    method: str
    path: str
    """The target up to the first `?`, percent-encoding untouched (AGTP-API 5.5)."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case, each once; read-only, for equal heads share it."""
    body: bytes


class ResponseMessage(msgspec.Struct, frozen=True, gc=False):
    """One response, framing removed."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Names in lower case, each once; read-only."""
    body: bytes


class WireFault(msgspec.Struct, frozen=True):
    """Bytes that are no message. Where the next message begins is unknown, so nothing after it is read."""

    status: int
    code: str
    message: str


class Pause(enum.Enum):
    """Why a reader has no message."""

    NEED_DATA = "need-data"
    """No whole message yet."""
    CLOSED = "closed"
    """The peer has finished, between messages."""


NEED_DATA: Final = Pause.NEED_DATA
CLOSED: Final = Pause.CLOSED
