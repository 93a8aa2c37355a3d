"""Base64url without padding: exactly one text for each value."""

from __future__ import annotations

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from typing import Final

_FROM_URL: Final = str.maketrans("-_+/=", "+/!!!")
"""Translation that maps characters outside base64url to ones outside base64."""


def encode64(data: bytes) -> bytes:
    """Encode bytes as base64url without padding."""
    # Both characters are rare in the base64 of JSON, and `replace` returns bytes without them as they are.
    return b2a_base64(data, newline=False).rstrip(b"=").replace(b"+", b"-").replace(b"/", b"_")


def decode64(text: str) -> bytes | None:
    """Decode base64url text; return None if it is not the canonical text of a value."""
    try:
        data = a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4), strict_mode=True)
    except (NotBase64, ValueError):
        return None
    return data if encode64(data) == text.encode() else None
