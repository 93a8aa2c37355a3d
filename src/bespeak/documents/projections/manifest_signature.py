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
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import OKPKey
from joserfc.jws import JWSRegistry, detach_content, extract_compact, serialize_compact, validate_compact

from bespeak.protocol.fault import Fault
from bespeak.state.identity.key_text import key_id, parse_key, public_jwk

SIGNATURE_MEMBER: Final = "manifest_signature"

_ALGORITHMS: Final = ("EdDSA", "Ed25519")
"""Two names of one algorithm for a key on this curve: RFC 8037, and RFC 9864, which replaces it. The first is
emitted, because every JOSE library in use reads it.
"""

_SORTED: Final = msgspec.json.Encoder(order="sorted")


class _Registry(JWSRegistry):
    """Registry that admits only this algorithm, and manifests as large as ten thousand endpoints make them."""

    max_header_length = 4096
    max_payload_length = 256 * 1024 * 1024

    def get_alg(self, name: str) -> Any:
        if name not in _ALGORITHMS:
            raise UnsupportedAlgorithmError(f"the algorithm is {name!r}, not one of {', '.join(_ALGORITHMS)}")
        return self.algorithms[name]


_REGISTRY: Final = _Registry()


class SignatureVerdict(msgspec.Struct, frozen=True):
    """Result of a signature check. AGTP-API 8.8: no result is a reason to reject the manifest in v00."""

    state: Literal["valid", "absent", "invalid", "unknown-key"]
    """Result; `unknown-key` if signed by a key that is not the trusted one or not available."""
    reason: str
    key_id: str | None = None
    """Thumbprint of the key that made a valid signature."""
    trusted: bool = False
    """True if a valid signature is by the key the caller pinned, not merely by the one in the envelope."""


def canonical_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return _SORTED.encode({name: value for name, value in manifest.items() if name != SIGNATURE_MEMBER})


def sign_content(content: bytes, key: OKPKey) -> str:
    """Sign canonical bytes, of a manifest or of another published document."""
    header = {"alg": _ALGORITHMS[0], "kid": key_id(key), "jwk": public_jwk(key)}
    return detach_content(serialize_compact(header, content, key, registry=_REGISTRY))


def sign_manifest(manifest: Mapping[str, Any], key: OKPKey) -> str:
    """Return the value of `manifest_signature`."""
    return sign_content(canonical_manifest(manifest), key)


def verify_manifest(manifest: Mapping[str, Any], trusted: OKPKey | None = None) -> SignatureVerdict:
    """Verify a manifest's signature, with the trusted key if given, else with the key it carries."""
    envelope = manifest.get(SIGNATURE_MEMBER)
    if envelope is None:
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
    if not isinstance(envelope, str) or envelope.count(".") != 2:
        return SignatureVerdict("invalid", "the signature is not a compact JWS, 'header..signature'")
    before, _, after = envelope.split(".")
    try:
        # A payload inside the envelope is ignored; only the given content counts.
        signature = extract_compact(f"{before}..{after}".encode(), content, _REGISTRY)
        key = _choose_key(signature.protected, trusted)
        if isinstance(key, SignatureVerdict):
            return key
        intact = validate_compact(signature, key, registry=_REGISTRY)
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        return SignatureVerdict("invalid", f"the signature cannot be checked: {error}")
    if not intact:
        return SignatureVerdict("invalid", "the signature does not match the content: one of them was changed")
    whose = "the trusted key" if trusted is not None else "the key it carries, which is not pinned"
    return SignatureVerdict("valid", f"signed by {whose}", key_id(key), trusted is not None)


def _choose_key(header: object, trusted: OKPKey | None) -> OKPKey | SignatureVerdict:
    """Return the key to verify with, or the verdict if there is none."""
    if not isinstance(header, dict):
        return SignatureVerdict("invalid", "the header of the JWS is not an object")
    carried = header.get("jwk")
    key = parse_key(msgspec.json.encode(carried).decode()) if carried is not None else None
    if isinstance(key, Fault):
        return SignatureVerdict("invalid", f"the key in the JWS cannot be used: {key.message}")
    named = key_id(key) if key is not None else header.get("kid")
    if trusted is None:
        return key or SignatureVerdict(
            "unknown-key", f"the signature does not carry its key {named}, and none is pinned"
        )
    if named not in (None, key_id(trusted)):
        return SignatureVerdict("unknown-key", f"signed by the key {named}, not by the pinned {key_id(trusted)}")
    return trusted
