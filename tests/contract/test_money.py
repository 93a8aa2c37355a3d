"""Amounts of money are exact, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.payments import MOST, Money, is_currency, read_money


@pytest.mark.parametrize(
    ("value", "currency", "minor"),
    [
        ("12.34", "EUR", 1234),
        ("12.3", "EUR", 1230),
        ("0.10000", "EUR", 10),
        (12, "EUR", 1200),
        (12.0, "EUR", 1200),
        ("500", "JPY", 500),
        ("1.234", "KWD", 1234),
        ("10000000000000", "EUR", MOST),
    ],
)
def test_an_amount_becomes_whole_units(value: Any, currency: str, minor: int) -> None:
    assert read_money(value, currency) == Money(minor, currency)


@pytest.mark.parametrize(
    ("value", "currency"),
    [
        *(("1.005", "EUR"), ("0.5", "JPY"), ("-1", "EUR"), (-1, "EUR"), ("1e3", "EUR"), (1e30, "EUR")),
        *((0.1, "EUR"), (float("nan"), "EUR"), (float("inf"), "EUR"), ("", "EUR"), ("9" * 15, "EUR"), ("١", "EUR")),
        *((True, "EUR"), ("1\n", "EUR")),
    ],
)
def test_what_is_not_an_exact_amount_is_explained(value: Any, currency: str) -> None:
    assert isinstance(read_money(value, currency), str)


def test_money_is_written_with_the_places_of_its_currency() -> None:
    assert Money(1230, "EUR").document() == {"value": "12.30", "currency": "EUR"}
    assert (str(Money(5, "JPY")), str(Money(5, "KWD"))) == ("5 JPY", "0.005 KWD")
    assert (is_currency("EUR"), is_currency("eur"), is_currency("EURO")) == (True, False, False)
