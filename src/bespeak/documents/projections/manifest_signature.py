"""The manifest signature: a JWS by an Ed25519 key over the canonical form of the manifest (AGTP-API 8.8).

AGTP-API leaves the algorithm, the canonical form and the publication of keys to AGTP-CERT. Until that is published:

* Canonical form: the manifest without `manifest_signature` as UTF-8 JSON, members sorted by name, no white space.
* Envelope: JWS Compact Serialization with detached content (RFC 7515, appendix F), `header..signature`. The payload
  would only repeat the manifest that contains the signature.
* Header: `alg` EdDSA, `kid` (the key's thumbprint, RFC 7638) and `jwk` (the public key). With this key any client can
  check the integrity of the manifest; only a client that got the key another way knows its owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import (
    ALGORITHM,
    PrivateKey,
    PublicKey,
    key_id,
    parse_jwk,
    parse_jws,
    public_jwk,
    sign_detached,
)

SIGNATURE_MEMBER: Final = "manifest_signature"

_LONGEST: Final = 8192  # maximum characters of a signature, which has no payload

_SORTED: Final = msgspec.json.Encoder(order="sorted")


class SignatureVerdict(msgspec.Struct, frozen=True):
    """Result of a signature check. AGTP-API 8.8: no result is a reason to reject the manifest in v00."""

    state: Literal["valid", "absent", "invalid", "unknown-key"]  # signed by none that is trusted or available
    reason: str
    key_id: str | None = None  # thumbprint of the key that made a valid signature
    trusted: bool = False  # True if a valid signature is by the key the caller pinned, not by the one in the envelope.


def canonical_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return _SORTED.encode({name: value for name, value in manifest.items() if name != SIGNATURE_MEMBER})


def sign_content(content: bytes, key: OKPKey) -> str:
    """Sign canonical bytes, of a manifest or of another published document."""
    private = key.private_key
    assert isinstance(private, PrivateKey)
    # RFC 8037 and RFC 9864 name one algorithm: this name is the one that every JOSE library in use reads.
    return sign_detached({"alg": ALGORITHM, "kid": key_id(key), "jwk": public_jwk(key)}, content, private)


def sign_manifest(manifest: Mapping[str, Any], key: OKPKey) -> str:
    return sign_content(canonical_manifest(manifest), key)


def verify_manifest(manifest: Mapping[str, Any], trusted: OKPKey | None = None) -> SignatureVerdict:
    """Verify a manifest's signature, with the trusted key if given, else with the key it carries."""
    if (envelope := manifest.get(SIGNATURE_MEMBER)) is None:
        return SignatureVerdict("absent", "the manifest is not signed")
    try:
        content = canonical_manifest(manifest)
    except (ValueError, TypeError, RecursionError) as error:
        return SignatureVerdict("invalid", f"the manifest has no canonical form: {error}")
    return verify_content(envelope, content, trusted)


def verify_content(envelope: object, content: bytes, trusted: OKPKey | None = None) -> SignatureVerdict:
    """Verify the signature of canonical bytes in the same way."""
    if envelope is None:
        return SignatureVerdict("absent", "there is no signature")
    jws = parse_jws(envelope, longest=_LONGEST, content=content) if isinstance(envelope, str) else Fault("not a text")
    if isinstance(jws, Fault):
        return SignatureVerdict("invalid", f"the signature is not a JWS 'header..signature': {jws.message}")
    key = _choose_key(jws.header, trusted)
    if isinstance(key, SignatureVerdict):
        return key
    public = key.public_key
    assert isinstance(public, PublicKey)
    if not jws.is_by(public):
        return SignatureVerdict("invalid", "the signature does not match the content: one of them was changed")
    whose = "the trusted key" if trusted is not None else "the key it carries, which is not pinned"
    return SignatureVerdict("valid", f"signed by {whose}", key_id(key), trusted is not None)


def _choose_key(header: Mapping[str, Any], trusted: OKPKey | None) -> OKPKey | SignatureVerdict:
    carried = header.get("jwk")
    key = None if carried is None else parse_jwk(carried) if isinstance(carried, dict) else Fault("it is not an object")
    if isinstance(key, Fault):
        return SignatureVerdict("invalid", f"the key in the JWS cannot be used: {key.message}")
    named = key_id(key) if key is not None else header.get("kid")
    if trusted is None:
        reason = f"the signature does not carry its key {named}, and none is pinned"
        return key or SignatureVerdict("unknown-key", reason)
    if named not in (None, key_id(trusted)):
        return SignatureVerdict("unknown-key", f"signed by the key {named}, not by the pinned {key_id(trusted)}")
    return trusted
