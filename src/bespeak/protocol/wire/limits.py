"""How much of a message is read before it is refused: the drafts set no limits, an open port needs them."""

from __future__ import annotations

from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """The largest message a reader accepts. Sizes are bytes as they stand on the wire, line ends included."""

    line: int = 8192
    """The start line."""
    head: int = 65536
    """Start line, headers and the blank line together."""
    headers: int = 128
    """Header lines."""
    body: int = 1024 * 1024


DEFAULT_LIMITS: Final = Limits()
"""For requests."""

RESPONSE_LIMITS: Final = Limits(head=4 * DEFAULT_LIMITS.head, body=64 * 1024 * 1024)
"""For responses, which echo parts of a request, and may be the manifest of a server with ten thousand endpoints."""
