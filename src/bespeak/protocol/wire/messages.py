"""Results of a reader: complete messages, or the fault that ends the connection."""

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
    """Headers with names in lower case, each once; read-only."""
    body: bytes


class Malformed(msgspec.Struct, frozen=True):
    """Bytes that are not a valid message. Where the next one begins is unknown, so the connection closes after the
    answer.
    """

    status: int
    code: str
    message: str


class Pause(enum.Enum):
    """The reason why a reader returns no message."""

    NEED_DATA = "need-data"
    """No complete message yet."""
    CLOSED = "closed"
    """The peer has closed, between two messages."""


NEED_DATA: Final = Pause.NEED_DATA
CLOSED: Final = Pause.CLOSED
