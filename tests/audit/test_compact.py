"""Compact JWS: taken apart without trust, and judged."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.trails import KEY, KEYS

from bespeak.audit.compact import judge, jws_id, parse_compact
from bespeak.audit.signing_key import SigningKey, encoded_header
from bespeak.audit.trusted_keys import trusted
from bespeak.documents.key_text import generate_key
from bespeak.identity.jws import encode64

SIGNING = SigningKey(KEY)
GOOD = SIGNING.sign(encoded_header(SIGNING.header("JWT")) + encode64(b'{"a":1}')).decode()
NONE = (encoded_header({"alg": "none", "typ": "JWT"}) + encode64(b"{}")).decode() + "."


def verdict(token: str, keys: object = None) -> str:
    compact = parse_compact(token)
    assert compact is not None
    return judge(compact, KEYS if keys is None else keys)  # type: ignore[arg-type]


@pytest.mark.requirement("CORE-10.3-3")
def test_a_signature_is_judged_by_the_trusted_keys() -> None:
    assert verdict(GOOD) == "good"
    assert verdict(GOOD, trusted([generate_key()])) == "unknown-key"
    assert verdict(GOOD, {}) == "unchecked"
    assert verdict(NONE) == "unsigned"


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "NONE", "None", ""])
def test_no_other_algorithm_counts(algorithm: str) -> None:
    _, payload, signature = GOOD.split(".")
    other = encoded_header({"alg": algorithm, "kid": SIGNING.kid}).decode()
    assert verdict(f"{other}{payload}.{signature}") == "bad"


def test_an_unsigned_token_with_a_signature_is_bad() -> None:
    assert verdict(NONE + "AAAA") == "bad"


def test_another_payload_under_a_signature_is_bad() -> None:
    header, _, signature = GOOD.split(".")
    assert verdict(f"{header}.{encode64(b'{}').decode()}.{signature}") == "bad"


@pytest.mark.parametrize("text", ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "e30=.e30.", "bnVsbA.e30.x", "ä.e30."])
def test_a_text_that_is_no_jws_is_none(text: str) -> None:
    assert parse_compact(text) is None


@given(st.text())
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    compact = parse_compact(text)
    assert compact is None or judge(compact, KEYS) in ("bad", "unsigned", "unknown-key")


@pytest.mark.requirement("CORE-12-4")
def test_the_id_is_the_hash_of_the_text() -> None:
    assert jws_id("a.b.c") == sha256(b"a.b.c").hexdigest()
