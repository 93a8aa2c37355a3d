"""Compact JWS by Ed25519 (RFC 7515, RFC 8037), straight on the library of the curve: requests are signed with it."""

from __future__ import annotations

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PrivateKey: TypeAlias = Ed25519PrivateKey
PublicKey: TypeAlias = Ed25519PublicKey

ALGORITHM: Final = "EdDSA"
ALGORITHMS: Final = frozenset({ALGORITHM, "Ed25519"})
"""Two names of one algorithm for keys on this curve: RFC 8037, and RFC 9864 that replaces it."""

_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = str.maketrans("-_+/=", "+/!!!")
"""What base64url does not have becomes what no base64 has."""

_SIGNATURE_LENGTH: Final = 64


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


def sign_compact(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """The token `header.payload.signature`."""
    content = encode64(msgspec.json.encode(header)) + b"." + encode64(payload)
    return (content + b"." + encode64(key.sign(content))).decode()


def sign_detached(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """The token `header..signature`, whose payload travels elsewhere (RFC 7515, appendix F)."""
    protected, _, signature = sign_compact(header, payload, key).split(".")
    return f"{protected}..{signature}"


def is_signed(protected: str, payload: bytes, signature: str, key: PublicKey) -> bool:
    """Whether the signature is by the key over this header, given encoded, and this payload."""
    raw = decode64(signature)
    if raw is None or len(raw) != _SIGNATURE_LENGTH:
        return False
    try:
        key.verify(raw, protected.encode() + b"." + encode64(payload))
    except (InvalidSignature, UnicodeEncodeError):
        return False
    return True
