"""Key sets: public usable keys are accepted; secret, weak and broken ones are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.state.identity.issuer import jwks, new_key, public

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jwks import KeySet, parse_key_set

ED, P256, P384, RSA = (new_key(kind) for kind in ("Ed25519", "P-256", "P-384", "RSA"))


def keys(text: str) -> KeySet:
    found = parse_key_set(text)
    assert isinstance(found, KeySet), found
    return found


def fault(text: str) -> str:
    found = parse_key_set(text)
    assert isinstance(found, Fault)
    return found.message


def weak_rsa() -> str:
    raw = generate_private_key(65537, 1024).public_key()
    return raw.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.mark.parametrize(
    ("key", "algorithms"),
    [(ED, {"EdDSA", "Ed25519"}), (P256, {"ES256"}), (P384, {"ES384"}), (RSA, {"RS256", "PS256"})],
)
def test_a_key_is_found_for_the_algorithms_of_its_type_only(key: Any, algorithms: set[str]) -> None:
    pem = key.as_pem(private=False).decode()
    for text in (json.dumps(public(key)), jwks(public(key)), pem, f"a comment\n{pem}"):
        every = ("EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256", "HS256", "none")
        assert {name for name in every if keys(text).find(None, name)} == algorithms


def test_a_key_is_found_by_its_name_and_one_without_a_name_by_any() -> None:
    named = keys(jwks(public(ED, kid="a"), public(new_key(), kid="b")))
    assert len(named.find("a", "EdDSA")) == 1
    assert len(named.find(None, "EdDSA")) == 2
    assert named.find("c", "EdDSA") == []
    assert named.names("a")
    assert not named.names("c")
    assert not named.names(None)
    nameless = keys(jwks(public(ED), public(new_key(), kid="b")))
    assert len(nameless.find("c", "EdDSA")) == 1


def test_a_token_is_tried_with_few_keys() -> None:
    assert len(keys(jwks(*(public(new_key()) for _ in range(30)))).find(None, "EdDSA")) == 8


def test_several_pem_blocks_are_several_keys() -> None:
    assert len(keys(ED.as_pem(private=False).decode() + P256.as_pem(private=False).decode())) == 2


@pytest.mark.parametrize(
    "unusable",
    [
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "LMS", "kid": "x"},
        {"kty": ["EC"]},
        {"kty": "OKP", "crv": "X25519", "x": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "x": 5},
        {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "RSA", "n": "AAAA", "e": "AQAB"},
        public(ED, use="enc"),
        public(ED, key_ops=["sign"]),
        public(ED, kid=7),
        public(ED, alg="ES256"),
        public(P256, alg="EdDSA"),
        public(new_key("secp256k1")),
        public(OKPKey.generate_key("Ed448")),
        ED.as_dict(private=True),
        "text",
        None,
    ],
)
def test_unusable_key_is_skipped_or_a_fault_if_it_is_the_only_one(unusable: Any) -> None:
    assert len(keys(jwks(unusable, public(P384, kid="good")))) == 1
    assert fault(jwks(unusable))


def test_key_may_be_restricted_to_an_algorithm() -> None:
    only = keys(jwks(public(RSA, alg="PS256")))
    assert only.find(None, "PS256")
    assert not only.find(None, "RS256")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ED.as_pem(private=True).decode(), "public half"),
        (json.dumps(ED.as_dict(private=True)), "public half"),
        ("", "no public key"),
        ("{", "not JSON"),
        ("{}", "unknown type"),
        ('{"keys": 1}', "no public key"),
        ('{"keys": []}', "no public key"),
        ("[" * 100_000, "no public key"),
        ('{"keys": ' + "[" * 100_000, "not JSON"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "broken"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate"),
        ("-----BEGIN PUBLIC KEY-----\n" * 9000, "no public key"),
        ("x" * 300_000, "bytes"),
    ],
    ids=range(13),
)
def test_text_without_a_key_is_a_fault_with_the_reason(text: str, words: str) -> None:
    assert words in fault(text)


def test_a_short_rsa_key_is_refused() -> None:
    assert "bits" in fault(weak_rsa())


def test_fault_does_not_quote_secrets() -> None:
    secret = ED.as_dict(private=True)["d"]
    assert str(secret) not in fault(json.dumps(ED.as_dict(private=True)))


members = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid", "use", "alg", "key_ops", "keys"])
words = st.sampled_from(["OKP", "EC", "RSA", "oct", "Ed25519", "P-256", "AQAB", "A" * 43, "A" * 342, "sig", "EdDSA"])


@given(st.text() | st.dictionaries(members, words | st.text() | st.integers() | st.lists(words, max_size=2)).map(jwks))
def test_any_text_gives_keys_or_a_fault(text: str) -> None:
    assert isinstance(parse_key_set(text), KeySet | Fault)


def test_set_with_a_repeated_member_is_refused() -> None:
    text = jwks(public(ED)).replace('"kty"', '"kty": "EC", "kty"', 1)
    assert isinstance(parse_key_set(text), Fault)
