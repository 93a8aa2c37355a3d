"""What a reader gives: whole messages, or the fault that ends the connection."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec


class ResponseMessage(msgspec.Struct, frozen=True, gc=False):
    """One response, framing removed."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Names in lower case, each once; read-only."""
    body: bytes


class Malformed(msgspec.Struct, frozen=True):
    """Bytes that are not a message. Where the next one begins is unknown, so the connection closes after the answer."""

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
