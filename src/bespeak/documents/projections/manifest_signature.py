"""The manifest signature: a JWS by an Ed25519 key over the canonical form of the manifest (AGTP-API 8.8).

AGTP-API leaves the algorithm, the canonical form and the way of publishing keys to AGTP-CERT. Ours, until that is out:

* Canonical form: the manifest without `manifest_signature` as UTF-8 JSON, members sorted by name, no white space.
* Envelope: JWS Compact Serialization with detached content (RFC 7515, appendix F), `header..signature`. The payload
  would only repeat the manifest that the signature stands in.
* Header: `alg` EdDSA, `kid` (the key's thumbprint, RFC 7638) and `jwk` (the public key). With the key at hand any
  client can check that the manifest is whole; only a client that got the key another way knows whose it is.
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
"""Two names of one algorithm for a key on this curve: RFC 8037, and RFC 9864 that replaces it. The first is emitted,
for every JOSE library in use reads it."""

_SORTED: Final = msgspec.json.Encoder(order="sorted")


class _Registry(JWSRegistry):
    """Admits the one algorithm, and manifests as large as ten thousand endpoints make them."""

    max_header_length = 4096
    max_payload_length = 256 * 1024 * 1024

    def get_alg(self, name: str) -> Any:
        if name not in _ALGORITHMS:
            raise UnsupportedAlgorithmError(f"the algorithm is {name!r}, not one of {', '.join(_ALGORITHMS)}")
        return self.algorithms[name]


_REGISTRY: Final = _Registry()


class SignatureVerdict(msgspec.Struct, frozen=True):
    """What a manifest's signature is worth. AGTP-API 8.8: none of these is a reason to reject the manifest in v00."""

    state: Literal["valid", "absent", "invalid", "unknown-key"]
    """`unknown-key`: signed, but not by the trusted key, or by a key that is not at hand."""
    reason: str
    key_id: str | None = None
    """Thumbprint of the key that made a valid signature."""
    trusted: bool = False
    """Whether a valid signature is by the key the caller pinned, not merely by the one in the envelope."""


def canonical_manifest(manifest: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    return _SORTED.encode({name: value for name, value in manifest.items() if name != SIGNATURE_MEMBER})


def sign_content(content: bytes, key: OKPKey) -> str:
    """The signature of canonical bytes, of a manifest or of another document that a server publishes."""
    header = {"alg": _ALGORITHMS[0], "kid": key_id(key), "jwk": public_jwk(key)}
    return detach_content(serialize_compact(header, content, key, registry=_REGISTRY))


def sign_manifest(manifest: Mapping[str, Any], key: OKPKey) -> str:
    """The value of `manifest_signature`."""
    return sign_content(canonical_manifest(manifest), key)


def verify_manifest(manifest: Mapping[str, Any], trusted: OKPKey | None = None) -> SignatureVerdict:
    """Judge a manifest's signature, by the trusted key if there is one, else by the key it carries."""
    envelope = manifest.get(SIGNATURE_MEMBER)
    if envelope is None:
        return SignatureVerdict("absent", "the manifest is not signed")
    try:
        content = canonical_manifest(manifest)
    except (ValueError, TypeError, RecursionError) as error:
        return SignatureVerdict("invalid", f"the manifest has no canonical form: {error}")
    return verify_content(envelope, content, trusted)


def verify_content(envelope: object, content: bytes, trusted: OKPKey | None = None) -> SignatureVerdict:
    """Judge the signature of canonical bytes in the same way."""
    if envelope is None:
        return SignatureVerdict("absent", "there is no signature")
    if not isinstance(envelope, str) or envelope.count(".") != 2:
        return SignatureVerdict("invalid", "the signature is not a compact JWS, 'header..signature'")
    before, _, after = envelope.split(".")
    try:
        # Whatever payload the envelope may carry, only the content at hand counts.
        signature = extract_compact(f"{before}..{after}".encode(), content, _REGISTRY)
        key = _choose_key(signature.protected, trusted)
        if isinstance(key, SignatureVerdict):
            return key
        intact = validate_compact(signature, key, registry=_REGISTRY)
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        return SignatureVerdict("invalid", f"the signature cannot be checked: {error}")
    if not intact:
        return SignatureVerdict("invalid", "the signature does not fit the content: one of them was changed")
    whose = "the trusted key" if trusted is not None else "the key it carries, which nobody has pinned"
    return SignatureVerdict("valid", f"signed by {whose}", key_id(key), trusted is not None)


def _choose_key(header: object, trusted: OKPKey | None) -> OKPKey | SignatureVerdict:
    """The key to check with, or the verdict when there is none."""
    if not isinstance(header, dict):
        return SignatureVerdict("invalid", "the header of the JWS is not an object")
    carried = header.get("jwk")
    key = parse_key(msgspec.json.encode(carried).decode()) if carried is not None else None
    if isinstance(key, Fault):
        return SignatureVerdict("invalid", f"the key in the JWS is of no use: {key.message}")
    named = key_id(key) if key is not None else header.get("kid")
    if trusted is None:
        return key or SignatureVerdict(
            "unknown-key", f"the signature does not carry its key {named}, and none is pinned"
        )
    if named not in (None, key_id(trusted)):
        return SignatureVerdict("unknown-key", f"signed by the key {named}, not by the pinned {key_id(trusted)}")
    return trusted
