"""A declared cost: accepted notations and its output."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.limits import Cost, read_cost
from bespeak.protocol.exchange.header_values import UNITS, parse_budget


def test_numbers_and_texts_are_amounts() -> None:
    cost, faults = read_cost({"tokens": 500, "USD": "0.02", "EUR": 0.1, "compute-seconds": 1.5, "calls": Decimal(3)})
    assert faults == []
    assert cost is not None
    assert str(cost) == "tokens=500, USD=0.02, EUR=0.10, compute-seconds=1.5, calls=3"
    assert cost.to_json() == {"tokens": 500, "USD": "0.02", "EUR": "0.10", "compute-seconds": "1.5", "calls": 3}


def test_empty_mapping_has_no_cost() -> None:
    assert read_cost({}) == (None, [])


@pytest.mark.parametrize(
    ("unit", "value", "reason"),
    [
        ("gold", 1, "not one of the units"),
        ("tokens", True, "a number"),
        ("tokens", None, "a number"),
        ("tokens", [1], "a number"),
        ("tokens", -1, "not a valid amount"),
        ("tokens", 0.5, "whole number"),
        ("USD", float("nan"), "not a valid amount"),
        ("USD", float("inf"), "not a valid amount"),
        ("USD", 1e30, "not a valid amount"),
        ("USD", "2 cents", "not a valid amount"),
        ("USD", 0.001, "at most 2"),
        pytest.param("tokens", 10**5000, "not a valid amount", id="digits-beyond-all-measure"),
        ("calls", 0, "must be at least 1"),
    ],
)
def test_invalid_amount_is_reported_with_its_unit(unit: str, value: Any, reason: str) -> None:
    cost, [fault] = read_cost({"tokens": 1, unit: value})
    assert cost is None
    assert fault.at == unit
    assert reason in fault.message
    assert len(fault.message) < 300


@given(st.dictionaries(st.sampled_from([*UNITS, "gold"]), st.integers() | st.floats() | st.text(max_size=12)))
def test_valid_cost_round_trips_as_header_and_json(declared: dict[str, Any]) -> None:
    cost, faults = read_cost(declared)
    if cost is not None:
        assert parse_budget(str(cost)) == cost.amounts
        assert read_cost(cost.to_json()) == (cost, [])
    assert (cost is None) == (bool(faults) or not declared)
    assert Cost({}) != cost
