"""The manifest signature: signed content, accepted keys and algorithms, and verdicts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import OctKey, OKPKey
from joserfc.jws import detach_content, serialize_compact
from joserfc.util import urlsafe_b64decode, urlsafe_b64encode
from tests.cases import rows

from bespeak.documents.projections.manifest_signature import (
    canonical_manifest,
    sign_content,
    sign_manifest,
    verify_content,
    verify_manifest,
)
from bespeak.state.identity.jws import generate_key, key_id, parse_key, public_jwk

MANIFEST: dict[str, Any] = {
    "server": {"server_id": "rooms.acme.example", "operator": "Zürich Rooms"},
    "agtp_version": "1.0",
    "endpoints": [{"path": "/room", "method": "BOOK", "confidence": 0.95}],
}


def signed(key: OKPKey, manifest: dict[str, Any] = MANIFEST) -> dict[str, Any]:
    return {**manifest, "manifest_signature": sign_manifest(manifest, key)}


def with_header(envelope: str, **members: object) -> str:
    header, _, signature = envelope.split(".")
    changed = {**json.loads(urlsafe_b64decode(header.encode())), **members}
    return f"{urlsafe_b64encode(json.dumps(changed).encode()).decode()}..{signature}"


def public(key: OKPKey) -> OKPKey:
    parsed = parse_key(json.dumps(public_jwk(key)))
    assert isinstance(parsed, OKPKey)
    return parsed


@pytest.mark.requirement("API-8.8-1")
def test_canonical_form_is_sorted_without_signature_which_never_contains_the_private_key() -> None:
    assert canonical_manifest({"b": [1, {"d": "é", "c": None}], "manifest_signature": "x", "a": 0.5}) == (
        '{"a":0.5,"b":[1,{"c":null,"d":"é"}]}'.encode()
    )
    header = sign_manifest(MANIFEST, generate_key()).split(".")[0]
    assert set(json.loads(urlsafe_b64decode(header.encode()))["jwk"]) == {"crv", "kid", "kty", "x"}


@pytest.mark.requirement("API-8.8-1")
def test_the_signature_is_a_detached_jws_that_an_independent_verifier_accepts() -> None:
    key = generate_key()
    header, payload, signature = sign_manifest(MANIFEST, key).split(".")
    assert payload == ""
    members = json.loads(urlsafe_b64decode(header.encode()))
    assert (members["alg"], members["kid"]) == ("EdDSA", key_id(key))
    signing_input = header.encode() + b"." + urlsafe_b64encode(canonical_manifest(MANIFEST))
    raw = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(members["jwk"]["x"].encode()))
    raw.verify(urlsafe_b64decode(signature.encode()), signing_input)


@pytest.mark.parametrize("pinned", [True, False])
def test_an_intact_manifest_is_valid_and_trusted_if_its_key_is_pinned(pinned: bool) -> None:
    key = generate_key()
    verdict = verify_manifest(signed(key), public(key) if pinned else None)
    assert (verdict.state, verdict.trusted, verdict.key_id) == ("valid", pinned, key_id(key))


def test_reordered_and_large_manifests_verify() -> None:
    key = generate_key()
    again = msgspec.json.decode(json.dumps(dict(reversed(signed(key).items())), indent=2, ensure_ascii=False).encode())
    assert verify_manifest(again, key).state == "valid"
    large = {"endpoints": [{"path": f"/room/{number}", "description": "x" * 200} for number in range(2000)]}
    assert verify_manifest(signed(key, large), key).trusted


@pytest.mark.parametrize("manifest", [MANIFEST, {**MANIFEST, "manifest_signature": None}])
def test_a_missing_signature_is_absent_not_invalid(manifest: dict[str, Any]) -> None:
    assert verify_manifest(manifest).state == "absent"


@pytest.mark.requirement("API-9.5-2")
def test_a_changed_policy_makes_the_signature_invalid() -> None:
    policies = {"methods": {"allow": ["BOOK"], "redirects": []}}
    manifest = signed(generate_key(), {**MANIFEST, "policies": policies})
    assert verify_manifest(manifest).state == "valid"
    opened = {"policies": {"methods": {**policies["methods"], "allow": "*"}}}
    for change in (opened, {"agtp_version": "9.9"}, {"added": True}):
        assert verify_manifest({**manifest, **change}).state == "invalid"


def test_unpinned_key_and_missing_canonical_form_are_verdicts() -> None:
    verdict = verify_manifest(signed(generate_key()), generate_key())
    assert verdict.state == "unknown-key"
    assert not verdict.trusted
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert verify_manifest({"endpoints": deep, "manifest_signature": "a..b"}).state == "invalid"


def test_pinned_key_decides_whatever_key_id_or_payload_the_envelope_carries() -> None:
    pinned, other = generate_key(), generate_key()
    envelope = with_header(sign_manifest(MANIFEST, other), kid=key_id(pinned))
    assert verify_manifest({**MANIFEST, "manifest_signature": envelope}, pinned).state == "unknown-key"
    claimed = with_header(sign_manifest(MANIFEST, other), kid=key_id(pinned), jwk=public_jwk(pinned))
    assert verify_manifest({**MANIFEST, "manifest_signature": claimed}, pinned).state == "invalid"
    key = generate_key()
    whole = serialize_compact({"alg": "Ed25519"}, canonical_manifest(MANIFEST), key, algorithms=["Ed25519"])
    manifest = {**MANIFEST, "manifest_signature": detach_content(whole)}
    assert verify_manifest(manifest).state == "unknown-key"
    assert verify_manifest(manifest, key).trusted
    header = {"alg": "Ed25519", "jwk": public_jwk(key)}
    for payload, state in ((canonical_manifest(MANIFEST), "valid"), (b"{}", "invalid")):
        envelope = serialize_compact(header, payload, key, algorithms=["Ed25519"])
        assert verify_manifest({**MANIFEST, "manifest_signature": envelope}).state == state


def test_no_other_algorithm_is_accepted() -> None:
    key = generate_key()
    none = with_header(sign_manifest(MANIFEST, key), alg="none").rpartition(".")[0] + "."
    assert verify_manifest({**MANIFEST, "manifest_signature": none}).state == "invalid"
    # The public key as an HMAC secret: the classic confusion of algorithms.
    secret = OctKey.import_key(public_jwk(key)["x"] * 2)
    header = {"alg": "HS256", "jwk": public_jwk(key)}
    confused = serialize_compact(header, canonical_manifest(MANIFEST), secret, algorithms=["HS256"])
    assert verify_manifest({**MANIFEST, "manifest_signature": detach_content(confused)}, key).state == "invalid"


@rows(
    "envelope",
    *(7, [], "", "..", "a.b", "a.b.c.d", "!!!..!!!", "eyJhbGciOiJFZERTQSJ9.."),
    *("WzFd..AA", "W1tb..AA", "e30..AA", "\ud800..x"),
)
def test_text_that_is_not_a_jws_gives_a_verdict(envelope: object) -> None:
    assert verify_manifest({**MANIFEST, "manifest_signature": envelope}).state in ("invalid", "unknown-key")


@given(st.text(max_size=80), st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_text_as_a_signature_is_a_verdict_and_never_valid(header: str, signature: str) -> None:
    segment = urlsafe_b64encode(header.encode("utf-8", "replace")).decode()
    for envelope in (f"{header}..{signature}", f"{segment}..{signature}"):
        assert verify_manifest({**MANIFEST, "manifest_signature": envelope}).state != "valid"


def test_other_content_is_signed_and_verified_in_the_same_way() -> None:
    key = generate_key()
    envelope = sign_content(b"content", key)
    assert verify_content(envelope, b"content", key).trusted
    assert verify_content(envelope, b"other", key).state == "invalid"
    assert verify_content(None, b"content", key).state == "absent"
