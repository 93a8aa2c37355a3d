"""Signed content: documents of SIGN (Tier 2 5.8), and the exact content of ontologies and alignments (IoA 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import ALGORITHM, Jws, PrivateKey, PublicKey, read_token, sign_compact

DOCUMENT_TYPE: Final = "agtp-signed+json"
ARTIFACT_TYPE: Final = "bespeak-artifact+json"
_LONGEST_DOCUMENT: Final = 1 << 20  # maximum characters of a token; the payload that SIGN takes makes a third of that
_LONGEST_ARTIFACT: Final = 16 * 1024
canonical = msgspec.json.Encoder(order="sorted").encode
ContentT = TypeVar("ContentT")


class SignedDocument(msgspec.Struct, frozen=True):
    payload: Any
    agent_id: str  # Agent that asked for the signature
    server_id: str
    signed_at: str


class ArtifactStatement(msgspec.Struct, frozen=True):
    """The exact content of an artifact."""

    kind: str  # `ontology`, `alignment` or `context`
    id: str
    version: str
    sha256: str  # digest of the content, in hexadecimal digits


class _SignedStatement(msgspec.Struct):
    statement: ArtifactStatement
    signed_at: str


# One member of its own, so that a token can never pass for a record, delegation or manifest that the same key signs.
class _DocumentContent(msgspec.Struct):
    agtp_signed: SignedDocument


class _ArtifactContent(msgspec.Struct):
    bespeak_artifact: _SignedStatement


_DOCUMENT: Final = msgspec.json.Decoder(_DocumentContent)
_ARTIFACT: Final = msgspec.json.Decoder(_ArtifactContent)


def write_signed(document: SignedDocument, key: PrivateKey, key_id: str, algorithm: str) -> str:
    header = {"alg": algorithm, "kid": key_id, "typ": DOCUMENT_TYPE}
    return sign_compact(header, canonical(_DocumentContent(document)), key)


def read_signed(token: str, keys: Mapping[str, PublicKey]) -> SignedDocument | Fault:
    read = _read(token, _DOCUMENT, keys, longest=_LONGEST_DOCUMENT, typ=DOCUMENT_TYPE)
    return read if isinstance(read, Fault) else read[1].agtp_signed


def sign_artifact(statement: ArtifactStatement, key: PrivateKey, key_id: str, at: float) -> str:
    content = canonical(_ArtifactContent(_SignedStatement(statement, write_instant(at))))
    return sign_compact({"alg": ALGORITHM, "kid": key_id, "typ": ARTIFACT_TYPE}, content, key)


def verify_artifact(token: str, statement: ArtifactStatement, keys: Mapping[str, PublicKey]) -> str | Fault:
    """Return the id of the key that has signed this content, or why the signature does not count."""
    read = _read(token, _ARTIFACT, keys, longest=_LONGEST_ARTIFACT, typ=ARTIFACT_TYPE)
    if isinstance(read, Fault):
        return Fault(f"the signature cannot be used: {read.message}")
    jws, content = read
    for field in ArtifactStatement.__struct_fields__:
        given, wanted = getattr(content.bespeak_artifact.statement, field), getattr(statement, field)
        if given != wanted:
            return Fault(f"the signature is for the {field} {given[:80]!r}; the content has {wanted[:80]!r}", field)
    return jws.key_id


def _read(
    token: str, decoder: msgspec.json.Decoder[ContentT], keys: Mapping[str, PublicKey], *, longest: int, typ: str
) -> tuple[Jws, ContentT] | Fault:
    read = read_token(token, decoder, longest=longest, typ=typ)
    if isinstance(read, Fault):
        return read
    key = keys.get(read[0].key_id)
    if key is None:
        return Fault(f"it is by the key {read[0].key_id[:80]!r}, which is not trusted")
    return read if read[0].is_by(key) else Fault("it does not match its key, or was changed")
