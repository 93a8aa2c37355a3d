"""Compact JWS: taken apart without trust."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import jws_id, parse_compact


@pytest.mark.parametrize("text", ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "e30=.e30.", "bnVsbA.e30.x", "ä.e30."])
def test_invalid_jws_is_refused(text: str) -> None:
    assert parse_compact(text) is None


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    compact = parse_compact(text)
    assert compact is None or text == f"{compact.protected}.{encode64(compact.payload).decode()}.{compact.signature}"


@pytest.mark.requirement("CORE-12-4")
def test_the_id_is_the_hash_of_the_text() -> None:
    assert jws_id("a.b.c") == sha256(b"a.b.c").hexdigest()
