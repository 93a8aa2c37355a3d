"""Documents that SIGN has signed: a token with the payload, for whom it was signed and when (Tier 2 5.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import PrivateKey, PublicKey, read_token, sign_compact

TYPE: Final = "agtp-signed+json"
_LONGEST: Final = 1 << 20  # maximum characters of a token; the payload that SIGN takes makes a third of that
canonical = msgspec.json.Encoder(order="sorted").encode


class SignedDocument(msgspec.Struct, frozen=True):
    payload: Any
    agent_id: str  # Agent that asked for the signature
    server_id: str
    signed_at: str


class _SignedContent(msgspec.Struct):
    # One member of its own, so that it can never pass for a record, delegation or manifest that the same key signs.
    agtp_signed: SignedDocument


_CONTENT: Final = msgspec.json.Decoder(_SignedContent)


def write_signed(document: SignedDocument, key: PrivateKey, key_id: str, algorithm: str) -> str:
    return sign_compact({"alg": algorithm, "kid": key_id, "typ": TYPE}, canonical(_SignedContent(document)), key)


def read_signed(token: str, keys: Mapping[str, PublicKey]) -> SignedDocument | Fault:
    read = read_token(token, _CONTENT, longest=_LONGEST, typ=TYPE)
    if isinstance(read, Fault):
        return read
    jws, content = read
    key = keys.get(jws.key_id)
    if key is None:
        return Fault(f"the key {jws.key_id[:80]!r} is not known")
    return content.agtp_signed if jws.is_by(key) else Fault("it does not match the key, or was changed")
