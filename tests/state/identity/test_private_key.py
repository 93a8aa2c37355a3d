"""Private keys are found by their form and by their name, and public ones are left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.state.identity.agent_json import private_keys


@pytest.mark.parametrize(
    ("document", "at"),
    [
        ({"key": {"kty": "OKP", "crv": "Ed25519", "x": "x", "d": "d"}}, "/key"),
        ({"kty": "RSA", "n": "n", "e": "e", "p": "p"}, ""),
        ({"a": [{"b": "-----BEGIN PRIVATE KEY-----\nx"}]}, "/a/0/b"),
        ({"a": "-----BEGIN ENCRYPTED PRIVATE KEY-----"}, "/a"),
        ({"a": "-----BEGIN EC PRIVATE KEY-----"}, "/a"),
        ({"private_key": "x"}, "/private_key"),
        ({"Agent-Private-Key": "x"}, "/Agent-Private-Key"),
        ({"x_secret_keys": {"a": 1}}, "/x_secret_keys"),
    ],
)
def test_private_key_is_found_with_its_pointer(document: dict[str, Any], at: str) -> None:
    assert list(private_keys(document)) == [at]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"key": {"kty": "OKP", "crv": "Ed25519", "x": "x"}},
        {"a": "-----BEGIN PUBLIC KEY-----"},
        {"private_key": None},
        {"private_key": ""},
        {"d": "x", "k": "y"},
        {"private_keyboard": "x", "description": "keeps its private key to itself"},
    ],
)
def test_other_values_are_not_reported(document: dict[str, Any]) -> None:
    assert list(private_keys(document)) == []


def test_deep_document_does_not_recurse() -> None:
    deep: dict[str, Any] = {"private_key": "x"}
    for _ in range(5000):
        deep = {"a": [deep]}
    assert len(list(private_keys(deep))) == 1


@given(st.recursive(st.none() | st.text(max_size=5), lambda x: st.lists(x) | st.dictionaries(st.text(max_size=9), x)))
def test_any_document_is_searched(document: Any) -> None:
    list(private_keys({"document": document}))
