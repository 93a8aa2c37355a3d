"""Delegation tokens: claims and verification."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import OKPKey
from joserfc.jws import deserialize_compact

from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.state.identity.delegation import LONGEST_TOKEN, Break, Claims, read_token, sign_token, token_hash
from bespeak.state.identity.jws import ALGORITHM, sign_compact

KEY = Ed25519PrivateKey.generate()
SAID: dict[str, Any] = {
    "iss": "1" * 64,
    "sub": "2" * 64,
    "aud": "rooms",
    "scope": ["rooms:read"],
    "depth": 0,
    "exp": 1_800_003_600,
    "iat": 1_800_000_000,
    "jti": "one",
}


def read(token: str) -> Claims | Break:
    return read_token(token, "rooms", lambda _: KEY.public_key())


def test_claims_are_read_back() -> None:
    said = msgspec.convert(SAID, Claims)
    assert read(sign_token(said, KEY)) == said
    assert said.holder == SAID["iss"]


def test_token_is_a_jws_without_unknown_claims() -> None:
    token = sign_token(msgspec.convert(SAID, Claims), KEY)
    assert token.count(".") == 2
    head, body, _ = token.split(".")
    assert msgspec.json.decode(decode64(head) or b"") == {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    assert msgspec.json.decode(decode64(body) or b"") == SAID


def test_members_of_later_releases_are_ignored() -> None:
    header = {"alg": "Ed25519", "typ": "agtp-delegation+jwt", "kid": "k"}
    token = sign_compact(header, msgspec.json.encode({**SAID, "new": 1}), KEY)
    assert isinstance(read(token), Claims)
    x = encode64(KEY.public_key().public_bytes_raw()).decode()
    jose = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": x})
    assert deserialize_compact(token, jose, algorithms=["Ed25519"]).headers()["kid"] == "k"


@pytest.mark.parametrize("member", ['"scope":["a:b"]', '"new":{"a":1,"a":2}'])
def test_repeated_claim_is_refused(member: str) -> None:
    header = {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    claims = msgspec.json.encode(SAID).replace(b"{", b"{" + member.encode() + b",", 1)
    found = read(sign_compact(header, claims, KEY))
    assert isinstance(found, Break)
    assert found.reason == "malformed"


@pytest.mark.parametrize("name", SAID)
def test_missing_or_mistyped_claim_is_refused(name: str) -> None:
    header = {"alg": ALGORITHM, "typ": "agtp-delegation+jwt"}
    for said in ({key: value for key, value in SAID.items() if key != name}, {**SAID, name: {}}):
        found = read(sign_compact(header, msgspec.json.encode(said), KEY))
        assert isinstance(found, Break)
        assert found.reason == "malformed"


@pytest.mark.parametrize(
    "changed",
    [
        {"jti": ""},
        {"jti": "a\x00b"},
        {"jti": "a b"},
        {"jti": "\u00fc"},
        {"jti": "x" * 129},
        {"exp": 2**63 - 1},
        {"exp": 253_402_300_800},
        {"iat": -(2**63)},
    ],
)
def test_invalid_id_and_unlimited_lifetime_are_refused(changed: dict[str, Any]) -> None:
    found = read(sign_token(msgspec.convert({**SAID, **changed}, Claims), KEY))
    assert isinstance(found, Break)
    assert found.reason == "malformed"


def test_a_token_beyond_the_limit_is_not_even_decoded() -> None:
    long = msgspec.convert({**SAID, "jti": "x" * LONGEST_TOKEN}, Claims)
    found = read(sign_token(long, KEY))
    assert isinstance(found, Break)
    assert str(LONGEST_TOKEN) in found.message


def test_hash_of_a_token_is_unique() -> None:
    assert token_hash("a") != token_hash("b")
    assert len(token_hash("a")) == 43
