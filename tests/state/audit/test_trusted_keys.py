"""Keys that signatures are checked with, from the texts they come in."""

from __future__ import annotations

import json

import pytest

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.key_files import parse_keys, trusted
from bespeak.state.identity.key_text import generate_key, key_id, private_text, public_jwk

OLD, NEW = generate_key(), generate_key()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(public_jwk(NEW)),
        public_jwk(NEW)["x"],
        private_text(NEW),
        json.dumps({"keys": [public_jwk(NEW)]}),
    ],
    ids=["jwk", "raw", "pem", "set"],
)
def test_one_key_is_read_in_every_form(text: str) -> None:
    found = parse_keys(text)
    assert not isinstance(found, Fault)
    assert list(found) == [key_id(NEW)]


def test_key_set_includes_the_keys_before_a_rotation() -> None:
    found = parse_keys(json.dumps({"keys": [public_jwk(OLD), public_jwk(NEW)]}))
    assert not isinstance(found, Fault)
    assert set(found) == {key_id(OLD), key_id(NEW)}


def test_key_is_identified_by_its_thumbprint_not_by_its_label() -> None:
    found = parse_keys(json.dumps({"keys": [public_jwk(OLD) | {"kid": key_id(NEW)}]}))
    assert not isinstance(found, Fault)
    assert list(found) == [key_id(OLD)]
    assert found.keys() == trusted([OLD]).keys()


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"keys": []}', '{"keys": [{"kty": "RSA"}]}', "nonsense", '{"keys": 1}']
)
def test_a_text_without_a_key_is_a_fault(text: str) -> None:
    assert isinstance(parse_keys(text), Fault)
