"""Signatures of ontologies and alignments: a token that names the exact content (IoA 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import ALGORITHM, PrivateKey, PublicKey, read_token, sign_compact

TYPE: Final = "bespeak-artifact+json"
_LONGEST: Final = 16 * 1024


class ArtifactStatement(msgspec.Struct, frozen=True):
    kind: str  # `ontology`, `alignment` or `context`
    id: str
    version: str
    sha256: str  # digest of the content, in hexadecimal digits


class _Signed(msgspec.Struct):
    statement: ArtifactStatement
    signed_at: str


class _ArtifactContent(msgspec.Struct):
    # One member of its own, so that the token can never pass for a record or a manifest that the same key signs.
    bespeak_artifact: _Signed


_CONTENT: Final = msgspec.json.Decoder(_ArtifactContent)


def sign_artifact(statement: ArtifactStatement, key: PrivateKey, key_id: str, at: float) -> str:
    content = msgspec.json.encode(_ArtifactContent(_Signed(statement, write_instant(at))), order="sorted")
    return sign_compact({"alg": ALGORITHM, "kid": key_id, "typ": TYPE}, content, key)


def verify_artifact(token: str, statement: ArtifactStatement, keys: Mapping[str, PublicKey]) -> str | Fault:
    """Return the id of the key that has signed this content, or why the signature does not count."""
    read = read_token(token, _CONTENT, longest=_LONGEST, typ=TYPE)
    if isinstance(read, Fault):
        return Fault(f"the signature cannot be used: {read.message}")
    jws, content = read
    key = keys.get(jws.key_id)
    if key is None:
        return Fault(f"the signature is by the key {jws.key_id[:80]!r}, which is not trusted")
    if not jws.is_by(key):
        return Fault("the signature does not match its key, or was changed")
    for field in ArtifactStatement.__struct_fields__:
        given, wanted = getattr(content.bespeak_artifact.statement, field), getattr(statement, field)
        if given != wanted:
            return Fault(f"the signature is for the {field} {given[:80]!r}; the content has {wanted[:80]!r}", field)
    return jws.key_id
