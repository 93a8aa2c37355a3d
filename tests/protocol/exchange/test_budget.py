"""Lists of amounts: valid ones, refused ones, and costs above a limit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.header_values import (
    UNITS,
    exceeded_units,
    format_amount,
    format_budget,
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
@pytest.mark.parametrize(
    ("text", "entry", "reason"),
    [
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
    ],
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
@pytest.mark.parametrize(
    ("unit", "amount", "text"),
    [
        ("tokens", "500", "500"),
        ("tokens", "1E+3", "1000"),
        ("USD", "0.5", "0.50"),
        ("EUR", "3", "3.00"),
        ("compute-seconds", "1.50", "1.5"),
        ("compute-seconds", "20", "20"),
        ("compute-seconds", "2.000", "2"),
    ],
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
