"""Size limits of messages: the drafts set none, but an open port needs them."""

from __future__ import annotations

from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """The largest message a reader accepts. Sizes are bytes on the wire, line ends included."""

    line: int = 8192
    """Maximum size of the start line."""
    head: int = 65536
    """Maximum size of start line, headers and blank line together."""
    headers: int = 128
    """Maximum number of header lines."""
    body: int = 1024 * 1024


DEFAULT_LIMITS: Final = Limits()
"""Limits for requests."""

RESPONSE_LIMITS: Final = Limits(head=4 * DEFAULT_LIMITS.head, body=64 * 1024 * 1024)
"""Limits for responses, which echo parts of a request and may be the manifest of ten thousand endpoints."""
