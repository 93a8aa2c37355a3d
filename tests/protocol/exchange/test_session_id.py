"""Session-IDs: what generators make passes, what people count or repeat does not."""

from __future__ import annotations

import secrets
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.header_values import WANTED_BITS, estimated_bits, is_session_id

MAKERS = {
    "token_urlsafe": lambda: secrets.token_urlsafe(16),
    "token_hex": lambda: secrets.token_hex(16),
    "upper hex": lambda: secrets.token_hex(16).upper(),
    "uuid4": lambda: str(uuid.uuid4()),
    "uuid4 in capitals": lambda: str(uuid.uuid4()).upper(),
    "prefixed hex": lambda: f"sess-{secrets.token_hex(16)}",
    "prefixed uuid4": lambda: f"session:{uuid.uuid4()}",
    "prefixed urlsafe": lambda: f"sess_{secrets.token_urlsafe(16)}",
    "digits": lambda: "".join(secrets.choice("0123456789") for _ in range(39)),
    "longer": lambda: secrets.token_urlsafe(64),
}


def test_a_word_in_front_is_passed_over_unless_it_may_be_part_of_the_number() -> None:
    assert estimated_bits("ffcbaeee-d80a-4800-b415-30a9b67c1452") == WANTED_BITS
    assert estimated_bits("face-30a9b67c1452d80a4800b41530a9b67c") > WANTED_BITS
    assert estimated_bits("sess-30a9b67c1452d80a4800b415") == 96


@pytest.mark.parametrize("maker", MAKERS)
def test_generated_ids_of_128_bits_always_pass(maker: str) -> None:
    for _ in range(2000):
        made = MAKERS[maker]()
        assert is_session_id(made)
        assert estimated_bits(made) >= WANTED_BITS, made


@pytest.mark.requirement("CORE-8-1")
@pytest.mark.parametrize(
    "weak",
    [
        "1",
        "session",
        "sess-1",
        "a" * 64,
        "0" * 31 + "1",
        "sess-00000000000000000000000000000042",
        "00000000-0000-4000-8000-000000000001",
        "0123456789abcdef" * 4,
        "abcdefghijklmnopqrstuvwxyzABCDEF",
        "zyxwvutsrqponmlkjihgfedcbaZYXWVU",
        "ab" * 40,
        "20261116030146000001",
        "sess-30ccc26241f1f832137599ce",
        "0U0lkk4OXDJDyxXh",
        "-" * 40,
        "c20a576e-e16b-11f1-9a78-02fc00000001",
        "session:c20a576e-e16b-11f1-9a78-02fc00000001",
        "019a8b3c-5f4e-7abc-9def-0123456789ab",
    ],
)
def test_short_constant_counted_and_repeated_ids_are_weak(weak: str) -> None:
    assert is_session_id(weak)
    assert estimated_bits(weak) < WANTED_BITS


@pytest.mark.parametrize("text", ["", " ", "a b", "a\n", "a\r\nX: y", "é" * 40, "a" * 257, "a;b", '"a"', "a,b"])
def test_characters_unsafe_in_logs_or_lists_are_not_valid_in_a_session_id(text: str) -> None:
    assert not is_session_id(text)


@given(st.from_regex(r"\A[A-Za-z0-9._~:@+/=-]{1,256}\Z"))
def test_the_estimate_is_bounded_by_the_length(text: str) -> None:
    assert 0 <= estimated_bits(text) <= 6 * len(text)
