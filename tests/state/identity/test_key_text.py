"""Keys as text: the accepted forms, and the faults of others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.key_text import generate_key, key_id, parse_jwk, parse_key, private_text, public_jwk


def test_key_round_trips_as_pem_jwk_and_bytes() -> None:
    key = generate_key()
    public = public_jwk(key)
    for text in (private_text(key), json.dumps(public), json.dumps(key.as_dict(private=True)), public["x"]):
        again = parse_key(text)
        assert isinstance(again, OKPKey)
        assert key_id(again) == key_id(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        "{}",
        "{",
        '{"kty":"oct","k":"AAAA"}',
        '{"kty":"OKP","crv":"X25519","x":"AAAA"}',
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_text_that_is_not_an_ed25519_key_is_a_fault(text: str) -> None:
    assert isinstance(parse_key(text), Fault)


def test_a_key_on_another_curve_is_a_fault_that_names_it() -> None:
    fault = parse_key(OKPKey.generate_key("Ed448").as_pem(private=True).decode())
    assert isinstance(fault, Fault)
    assert "Ed448" in fault.message


def test_the_public_half_has_no_private_part_and_reads_back() -> None:
    key = generate_key()
    again = parse_jwk(public_jwk(key))
    assert isinstance(again, OKPKey)
    assert not again.is_private
    assert key_id(again) == key_id(key)
    assert "d" not in public_jwk(again)


@given(st.text(max_size=80))
def test_any_text_is_a_key_or_a_fault(text: str) -> None:
    assert isinstance(parse_key(text), Fault | OKPKey)


@given(st.dictionaries(st.sampled_from(["kty", "crv", "x", "d", "kid", "use"]), st.text() | st.integers() | st.none()))
def test_any_members_are_a_key_or_a_fault(members: dict[str, object]) -> None:
    assert isinstance(parse_jwk({"kty": "OKP", "crv": "Ed25519", **members}), Fault | OKPKey)


def test_fault_for_other_content_describes_the_form_of_a_key() -> None:
    fault = parse_key("from bespeak import App\n")
    assert isinstance(fault, Fault)
    assert fault.message == "not an Ed25519 key: it is neither PEM, which has a line -----BEGIN ..., nor a JWK"
