"""Lists of amounts: valid ones, refused ones, and costs above a limit."""

from __future__ import annotations

import base64
import secrets
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.header_values import (
    LONGEST_TASK_ID,
    UNITS,
    WANTED_BITS,
    decode64,
    encode64,
    estimated_bits,
    exceeded_units,
    format_amount,
    format_budget,
    is_session_id,
    is_task_id,
    parse_amount,
    parse_budget,
)
from bespeak.protocol.exchange.refusal import Fault


def amounts() -> st.SearchStrategy[dict[str, Decimal]]:
    parts = {
        unit: st.decimals(0, 10**12, allow_nan=False, allow_infinity=False, places=places)
        for unit, places in UNITS.items()
    }
    return st.fixed_dictionaries({}, optional=parts).filter(bool)


def test_a_list_is_read_in_order_regardless_of_spaces() -> None:
    expected = {"tokens": Decimal(5000), "compute-seconds": Decimal("1.5"), "USD": Decimal("0.50")}
    assert parse_budget("tokens=5000,compute-seconds = 1.5 ,  USD=0.50") == expected
    assert list(parse_budget("USD=1, tokens=2")) == ["USD", "tokens"]  # type: ignore[arg-type]


@pytest.mark.requirement("CORE-7.7-1")
@rows(
    "text, entry, reason",
    ("", "", "unit=value"),
    ("tokens", "tokens", "unit=value"),
    ("tokens=5,,calls=1", "", "unit=value"),
    ("tokens=5,", "", "unit=value"),
    ("gold=5", "gold=5", "not one of the units"),
    ("usd=5", "usd=5", "not one of the units"),
    ("financial=10.00USD", "financial=10.00USD", "not one of the units"),
    ("tokens=", "tokens=", "not a valid amount"),
    ("tokens=-5", "tokens=-5", "not a valid amount"),
    ("tokens=+5", "tokens=+5", "not a valid amount"),
    ("tokens=1e9", "tokens=1e9", "not a valid amount"),
    ("tokens=NaN", "tokens=NaN", "not a valid amount"),
    ("tokens=٣", "tokens=٣", "not a valid amount"),
    ("tokens=" + "9" * 16, "tokens=" + "9" * 16, "not a valid amount"),
    ("tokens=1.5", "tokens=1.5", "whole number"),
    ("calls=1.0", "calls=1.0", "whole number"),
    ("USD=0.005", "USD=0.005", "at most 2"),
    ("tokens=1, tokens=2", "tokens=2", "twice"),
    ("tokens=1, USD=1=2", "USD=1=2", "not a valid amount"),
)
def test_the_first_invalid_entry_is_named(text: str, entry: str, reason: str) -> None:
    fault = parse_budget(text)
    assert isinstance(fault, Fault)
    assert fault.at == entry
    assert reason in fault.message


def test_a_header_of_many_entries_is_not_read_to_its_end() -> None:
    fault = parse_budget(
        ", ".join(["tokens=1", "calls=1", "USD=1", "EUR=1", "GBP=1", "compute-seconds=1", "x=1"] * 999)
    )
    assert isinstance(fault, Fault)


@pytest.mark.requirement("CORE-7.7-1")
@rows(
    "unit, amount, text",
    ("tokens", "500", "500"),
    ("tokens", "1E+3", "1000"),
    ("USD", "0.5", "0.50"),
    ("EUR", "3", "3.00"),
    ("compute-seconds", "1.50", "1.5"),
    ("compute-seconds", "20", "20"),
    ("compute-seconds", "2.000", "2"),
)
def test_amounts_are_written_as_the_registry_has_them(unit: str, amount: str, text: str) -> None:
    assert format_amount(unit, Decimal(amount)) == text


@given(amounts())
def test_the_round_trip_preserves_the_value(found: dict[str, Decimal]) -> None:
    assert parse_budget(format_budget(found)) == found


@given(st.text(max_size=60))
def test_any_text_is_a_list_or_a_fault_within_it(text: str) -> None:
    found = parse_budget(text)
    if isinstance(found, Fault):
        assert found.at in text
    else:
        assert found.keys() <= UNITS.keys()
        assert parse_budget(format_budget(found)) == found


@given(st.sampled_from(sorted(UNITS)), st.text("0123456789.", max_size=30))
def test_no_amount_has_more_places_than_its_unit(unit: str, text: str) -> None:
    amount = parse_amount(unit, text)
    if isinstance(amount, Decimal):
        assert 0 <= amount < 10**15
        assert -int(amount.as_tuple().exponent) <= UNITS[unit]


def test_a_limit_bounds_only_the_units_both_sides_name() -> None:
    cost = {"tokens": Decimal(500), "USD": Decimal("0.02")}
    assert exceeded_units(cost, {"tokens": Decimal(500), "EUR": Decimal(0)}) == []
    assert exceeded_units(cost, {"USD": Decimal("0.01"), "tokens": Decimal(499)}) == ["USD", "tokens"]


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
    for _ in range(200):
        made = MAKERS[maker]()
        assert is_session_id(made)
        assert estimated_bits(made) >= WANTED_BITS, made


@pytest.mark.requirement("CORE-8-1")
@rows(
    "weak",
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


@pytest.mark.parametrize("text", ["t", "task-0042", "a b", "Aufgabe-Ä", "x" * LONGEST_TASK_ID])
def test_texts_that_fit_in_a_header_are_task_ids(text: str) -> None:
    assert is_task_id(text)


@pytest.mark.parametrize("text", ["", " t", "t ", "a\r\nEvil: yes", "a\x00b", "x" * (LONGEST_TASK_ID + 1)])
def test_texts_that_would_not_arrive_unchanged_are_not(text: str) -> None:
    assert not is_task_id(text)
