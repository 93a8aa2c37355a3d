"""A compact JWS split into its parts, without verification."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from bespeak.protocol.exchange.base64url import decode64


class Header(msgspec.Struct, frozen=True):
    """The header members that matter."""

    alg: str
    typ: str = ""
    kid: str = ""


class Compact(msgspec.Struct, frozen=True):
    """The three parts of a JWS."""

    protected: str
    header: Header
    payload: bytes
    signature: str


_decode_header: Final = msgspec.json.Decoder(Header).decode


def jws_id(jws: str) -> str:
    """Return the id of a JWS: SHA-256 of its text, in hexadecimal (core 10.3)."""
    return sha256(jws.encode("utf-8", "surrogatepass")).hexdigest()


def parse_compact(jws: str) -> Compact | None:
    """Split a JWS into its parts; return None if the text is not a JWS."""
    parts = jws.split(".", 3)
    if len(parts) != 3:
        return None
    header, payload = decode64(parts[0]), decode64(parts[1])
    if header is None or payload is None:
        return None
    try:
        return Compact(parts[0], _decode_header(header), payload, parts[2])
    except (ValueError, RecursionError):
        return None
