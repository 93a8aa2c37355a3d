"""Signatures of ontologies and alignments: a token that names the exact content (IoA 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import ALGORITHM, ALGORITHMS, PrivateKey, PublicKey, is_signed, sign_compact

TYPE: Final = "bespeak-artifact+json"
_PARTS: Final = 3
_LONGEST: Final = 16 * 1024


class ArtifactStatement(msgspec.Struct, frozen=True):
    """What a signer vouches for."""

    kind: str
    """`ontology`, `alignment` or `context`."""
    id: str
    version: str
    sha256: str
    """Digest of the content, in hexadecimal digits."""


class SignedArtifact(msgspec.Struct, frozen=True):
    """A statement whose signature was verified."""

    statement: ArtifactStatement
    signer: str
    """Id of the key."""
    signed_at: str


class _Header(msgspec.Struct):
    alg: str
    kid: str
    typ: str


class _Signed(msgspec.Struct):
    statement: ArtifactStatement
    signed_at: str


class _Content(msgspec.Struct):
    # One member of its own, so that the token can never pass for a record or a manifest that the same key signs.
    bespeak_artifact: _Signed


def sign_artifact(statement: ArtifactStatement, key: PrivateKey, key_id: str, at: float) -> str:
    """Return the token of a statement."""
    content = msgspec.json.encode(_Content(_Signed(statement, write_instant(at))), order="sorted")
    return sign_compact(_Header(ALGORITHM, key_id, TYPE), content, key)


def verify_artifact(token: str, keys: Mapping[str, PublicKey]) -> SignedArtifact | Fault:
    """Verify a token with one of these keys, by key id."""
    parts = token.split(".") if len(token) <= _LONGEST else []
    raw = [decode64(part) for part in parts[:2]]
    if len(parts) != _PARTS or raw[0] is None or raw[1] is None:
        return Fault("the signature is not a token of three parts")
    try:
        header = msgspec.json.decode(raw[0], type=_Header)
        signed = msgspec.json.decode(raw[1], type=_Content).bespeak_artifact
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Fault("the signature is not a token for an ontology or an alignment")
    if header.typ != TYPE or header.alg not in ALGORITHMS:
        return Fault(f"the signature has the type {header.typ[:40]!r} and the algorithm {header.alg[:40]!r}")
    key = keys.get(header.kid)
    if key is None:
        return Fault(f"the signature is by the key {header.kid[:80]!r}, which is not trusted")
    if not is_signed(parts[0], raw[1], parts[2], key):
        return Fault("the signature does not match its key, or was changed")
    return SignedArtifact(signed.statement, header.kid, signed.signed_at)


def signature_fault(signed: SignedArtifact, statement: ArtifactStatement) -> Fault | None:
    """Return why a verified signature is not for this content, or None."""
    for field in ArtifactStatement.__struct_fields__:
        given, wanted = getattr(signed.statement, field), getattr(statement, field)
        if given != wanted:
            return Fault(f"the signature is for the {field} {given[:80]!r}; the content has {wanted[:80]!r}", field)
    return None
