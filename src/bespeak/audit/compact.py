"""A compact JWS taken apart, and the judgement on its signature."""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal

import msgspec

from bespeak.audit.trusted_keys import TrustedKeys
from bespeak.identity.jws import ALGORITHMS, decode64, is_signed

Verdict = Literal["good", "unsigned", "unknown-key", "bad", "unchecked"]
"""`unchecked`: there is a signature, and no key at all to check it with."""


class Header(msgspec.Struct, frozen=True):
    """The members of a header that matter."""

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
    """The name of a JWS: SHA-256 of its text, in hexadecimal (core 10.3)."""
    return sha256(jws.encode("utf-8", "surrogatepass")).hexdigest()


def parse_compact(jws: str) -> Compact | None:
    """The parts of a JWS, or None for a text that is none."""
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


def judge(compact: Compact, keys: TrustedKeys) -> Verdict:
    """What the signature is worth."""
    header = compact.header
    if header.alg == "none":
        return "bad" if compact.signature else "unsigned"
    if header.alg not in ALGORITHMS:
        return "bad"
    if not keys:
        return "unchecked"
    key = keys.get(header.kid)
    if key is None:
        return "unknown-key"
    return "good" if is_signed(compact.protected, compact.payload, compact.signature, key) else "bad"
