"""Documents that SIGN has signed: a token with the payload, for whom it was signed and when (Tier 2 5.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import ALGORITHMS, PrivateKey, PublicKey, is_signed, sign_compact

TYPE: Final = "agtp-signed+json"
_MEMBER: Final = "agtp_signed"
"""What is signed is inside one member, so that it can never pass for a record, a delegation or a manifest that the same
key signs.
"""
_PARTS: Final = 3

canonical = msgspec.json.Encoder(order="sorted").encode


class SignedDocument(msgspec.Struct, frozen=True):
    """What was signed."""

    payload: Any
    agent_id: str
    """Agent that asked for the signature."""
    server_id: str
    signed_at: str


class _Header(msgspec.Struct):
    alg: str
    kid: str
    typ: str


class _Content(msgspec.Struct):
    agtp_signed: SignedDocument


def write_signed(document: SignedDocument, key: PrivateKey, key_id: str, algorithm: str) -> str:
    """Return the token of a document."""
    header = _Header(algorithm, key_id, TYPE)
    return sign_compact(header, canonical({_MEMBER: document}), key)


def read_signed(token: str, keys: Mapping[str, PublicKey]) -> SignedDocument | Fault:
    """Verify a token with one of these keys, by key id."""
    parts = token.split(".")
    raw = [decode64(part) for part in parts[:2]]
    if len(parts) != _PARTS or raw[0] is None or raw[1] is None:
        return Fault("it is not a token of three parts")
    try:
        header = msgspec.json.decode(raw[0], type=_Header)
        content = msgspec.json.decode(raw[1], type=_Content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Fault("it is not a token that SIGN writes")
    if header.typ != TYPE or header.alg not in ALGORITHMS:
        return Fault(f"its type is {header.typ[:40]!r} and its algorithm {header.alg[:40]!r}")
    key = keys.get(header.kid)
    if key is None:
        return Fault(f"the key {header.kid[:80]!r} is not known")
    if not is_signed(parts[0], raw[1], parts[2], key):
        return Fault("it does not match the key, or was changed")
    return content.agtp_signed
