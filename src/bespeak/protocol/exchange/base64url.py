"""Bytes as base64url without padding: one text for one value."""

from __future__ import annotations

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from typing import Final

_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = str.maketrans("-_+/=", "+/!!!")
"""What base64url does not have becomes what no base64 has."""


def encode64(data: bytes) -> bytes:
    """Bytes as base64url without padding."""
    return b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL)


def decode64(text: str) -> bytes | None:
    """The bytes of a base64url text, or None. One text for one value: nothing is skipped, no spare bit is set."""
    try:
        data = a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4), strict_mode=True)
    except (NotBase64, ValueError):
        return None
    return data if encode64(data) == text.encode() else None
