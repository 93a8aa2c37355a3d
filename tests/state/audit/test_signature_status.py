"""Signatures are judged by the trusted keys, and by nothing that the token says of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.state.audit.trails import KEY, KEYS

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import encode_header, parse_compact
from bespeak.state.identity.key_files import SigningKey, check_signature, trusted
from bespeak.state.identity.key_text import generate_key

SIGNING = SigningKey(KEY)
GOOD = SIGNING.sign(encode_header(SIGNING.header("JWT")) + encode64(b'{"a":1}')).decode()
NONE = (encode_header({"alg": "none", "typ": "JWT"}) + encode64(b"{}")).decode() + "."


def verdict(token: str, keys: object = None) -> str:
    compact = parse_compact(token)
    assert compact is not None
    return check_signature(compact, KEYS if keys is None else keys)  # type: ignore[arg-type]


@pytest.mark.requirement("CORE-10.3-3")
def test_a_signature_is_judged_by_the_trusted_keys() -> None:
    assert verdict(GOOD) == "good"
    assert verdict(GOOD, trusted([generate_key()])) == "unknown-key"
    assert verdict(GOOD, {}) == "unchecked"
    assert verdict(NONE) == "unsigned"


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "NONE", "None", ""])
def test_other_algorithms_are_not_accepted(algorithm: str) -> None:
    _, payload, signature = GOOD.split(".")
    other = encode_header({"alg": algorithm, "kid": SIGNING.kid}).decode()
    assert verdict(f"{other}{payload}.{signature}") == "bad"


def test_an_unsigned_token_with_a_signature_is_bad() -> None:
    assert verdict(NONE + "AAAA") == "bad"


def test_another_payload_under_a_signature_is_bad() -> None:
    header, _, signature = GOOD.split(".")
    assert verdict(f"{header}.{encode64(b'{}').decode()}.{signature}") == "bad"


@given(st.text())
def test_random_text_has_no_good_signature(text: str) -> None:
    compact = parse_compact(text)
    assert compact is None or check_signature(compact, KEYS) in ("bad", "unsigned", "unknown-key")
