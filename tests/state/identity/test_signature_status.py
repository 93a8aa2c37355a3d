"""Signatures are judged by the trusted keys, and by nothing that the token says of itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.state.audit.trails import KEY, KEYS

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.audit.record import encode_header, parse_compact
from bespeak.state.identity.jws import generate_key, key_id, private_text, public_jwk
from bespeak.state.identity.key_files import SigningKey, check_signature, parse_keys, trusted

SIGNING = SigningKey(KEY)
GOOD = SIGNING.sign(encode_header(SIGNING.header("JWT")) + encode64(b'{"a":1}')).decode()
NONE = (encode_header({"alg": "none", "typ": "JWT"}) + encode64(b"{}")).decode() + "."
OLD, NEW = generate_key(), generate_key()


def verdict(token: str, keys: object = None) -> str:
    compact = parse_compact(token)
    assert compact is not None
    return check_signature(compact, KEYS if keys is None else keys)  # type: ignore[arg-type]


@pytest.mark.requirement("CORE-10.3-3")
def test_signature_is_judged_by_the_trusted_keys_and_bad_without_its_header_or_payload() -> None:
    assert verdict(GOOD) == "good"
    assert verdict(GOOD, trusted([generate_key()])) == "unknown-key"
    assert verdict(GOOD, {}) == "unchecked"
    assert verdict(NONE) == "unsigned"
    assert verdict(NONE + "AAAA") == "bad"
    header, _, signature = GOOD.split(".")
    assert verdict(f"{header}.{encode64(b'{}').decode()}.{signature}") == "bad"


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "NONE", "None", ""])
def test_other_algorithms_are_not_accepted(algorithm: str) -> None:
    _, payload, signature = GOOD.split(".")
    other = encode_header({"alg": algorithm, "kid": SIGNING.kid}).decode()
    assert verdict(f"{other}{payload}.{signature}") == "bad"


@given(st.text())
def test_random_text_has_no_good_signature(text: str) -> None:
    compact = parse_compact(text)
    assert compact is None or check_signature(compact, KEYS) in ("bad", "unsigned", "unknown-key")


@pytest.mark.parametrize(
    "text",
    [json.dumps(public_jwk(NEW)), public_jwk(NEW)["x"], private_text(NEW), json.dumps({"keys": [public_jwk(NEW)]})],
    ids=["jwk", "raw", "pem", "set"],
)
def test_one_key_is_read_in_every_form(text: str) -> None:
    found = parse_keys(text)
    assert not isinstance(found, Fault)
    assert list(found) == [key_id(NEW)]


def test_key_set_includes_earlier_keys_and_identifies_each_by_its_thumbprint() -> None:
    found = parse_keys(json.dumps({"keys": [public_jwk(OLD), public_jwk(NEW)]}))
    assert not isinstance(found, Fault)
    assert set(found) == {key_id(OLD), key_id(NEW)}
    found = parse_keys(json.dumps({"keys": [public_jwk(OLD) | {"kid": key_id(NEW)}]}))
    assert not isinstance(found, Fault)
    assert list(found) == [key_id(OLD)]
    assert found.keys() == trusted([OLD]).keys()


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}', "nonsense", '{"keys": 1}']
)
def test_a_text_without_a_key_is_a_fault(text: str) -> None:
    assert isinstance(parse_keys(text), Fault)


def test_signature_verifies_with_the_public_half_and_names_the_key() -> None:
    key = generate_key()
    signing = SigningKey(key)
    token = signing.sign(encode_header(signing.header("JWT")) + encode64(b"{}")).decode()
    compact = parse_compact(token)
    assert (compact.header["alg"], compact.header["typ"], compact.key_id) == ("EdDSA", "JWT", key_id(key))
    assert check_signature(compact, trusted([key])) == "good"


def test_public_key_cannot_sign_and_its_repr_shows_no_secret() -> None:
    public = OKPKey.import_key(dict(public_jwk(generate_key())))
    with pytest.raises(ConfigError, match="only a public key"):
        SigningKey(public)
    key = generate_key()
    assert repr(SigningKey(key)) == f"SigningKey({key_id(key)})"
    assert private_text(key).splitlines()[1] not in repr(SigningKey(key))
