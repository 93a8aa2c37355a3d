"""Compact JWS with Ed25519 (RFC 7515, RFC 8037), directly on `cryptography`, because requests are signed with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from bespeak.protocol.exchange.base64url import decode64, encode64

PrivateKey: TypeAlias = Ed25519PrivateKey
PublicKey: TypeAlias = Ed25519PublicKey

ALGORITHM: Final = "EdDSA"
ALGORITHMS: Final = frozenset({ALGORITHM, "Ed25519"})
"""Names of one algorithm for keys on this curve: RFC 8037, and RFC 9864, which replaces it."""


_SIGNATURE_LENGTH: Final = 64


def sign_compact(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """Return the token `header.payload.signature`."""
    content = encode64(msgspec.json.encode(header)) + b"." + encode64(payload)
    return (content + b"." + encode64(key.sign(content))).decode()


def sign_detached(header: Mapping[str, Any] | msgspec.Struct, payload: bytes, key: PrivateKey) -> str:
    """Return the token `header..signature` with detached payload (RFC 7515, appendix F)."""
    protected, _, signature = sign_compact(header, payload, key).split(".")
    return f"{protected}..{signature}"


def is_signed(protected: str, payload: bytes, signature: str, key: PublicKey) -> bool:
    """Return True if the signature by the key matches this encoded header and payload."""
    raw = decode64(signature)
    if raw is None or len(raw) != _SIGNATURE_LENGTH:
        return False
    try:
        key.verify(raw, protected.encode() + b"." + encode64(payload))
    except (InvalidSignature, UnicodeEncodeError):
        return False
    return True
