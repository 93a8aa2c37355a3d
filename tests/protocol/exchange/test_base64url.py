"""Base64url without padding: a lossless encoding with one text per value."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.header_values import decode64, encode64


@given(st.binary(max_size=80))
def test_bytes_survive_base64url(data: bytes) -> None:
    text = encode64(data)
    assert text == base64.urlsafe_b64encode(data).rstrip(b"=")
    assert decode64(text.decode()) == data


@pytest.mark.parametrize("text", ["A", "AB", "AA==", "A A", "AA\n", "+/+/", "é", "A=AA", "\ud800", "=", "!!!!"])
def test_a_text_that_is_not_canonical_is_none(text: str) -> None:
    assert decode64(text) is None


@given(st.text(max_size=20))
def test_only_the_text_that_encoding_gives_is_decoded(text: str) -> None:
    data = decode64(text)
    assert data is None or encode64(data).decode() == text
