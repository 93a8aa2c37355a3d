"""Budget-Limit and Cost-Estimate: amounts by unit, as a caller limits them and as an endpoint costs them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from bespeak.protocol.fault import Fault

# Core 2.3:  budget = entry *( "," entry )      entry = unit "=" amount
_AMOUNT: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?")

UNITS: Final[Mapping[str, int]] = {"tokens": 0, "compute-seconds": 9, "USD": 2, "EUR": 2, "GBP": 2, "calls": 0}
"""Registered units (core 7.7), each with the number of decimal places allowed."""

ONE_CALL: Final = Decimal(1)
"""Cost of every invocation in `calls`."""

_MONEY_PLACES: Final = 2


def parse_budget(text: str) -> dict[str, Decimal] | Fault:
    """Parse a list `unit=value, unit=value`; return the fault of its first entry that is not valid."""
    amounts: dict[str, Decimal] = {}
    # One comma more than there are units: the rest is one entry too many, and is read as one text.
    for part in text.split(",", len(UNITS)):
        entry = part.strip()
        unit, equals, value = entry.partition("=")
        unit = unit.rstrip()
        if not equals:
            return Fault("it is not of the form unit=value", entry)
        amount = parse_amount(unit, value.strip())
        if isinstance(amount, str):
            return Fault(amount, entry)
        if unit in amounts:
            return Fault(f"{unit} is limited twice", entry)
        amounts[unit] = amount
    return amounts


def parse_amount(unit: str, text: str) -> Decimal | str:
    """Parse an amount of a unit, or return what is wrong with it."""
    places = UNITS.get(unit)
    if places is None:
        return f"{unit[:40]!r} is not one of the units {', '.join(UNITS)}"
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return f"{text[:40]!r} is not a valid amount: write digits, and for some units a point and decimals"
    if len(found[2] or "") > places:
        form = f"has at most {places} decimal places" if places else "is a whole number"
        return f"an amount of {unit} {form}, not {text[:40]}"
    return Decimal(text)


def format_amount(unit: str, amount: Decimal) -> str:
    """Format an amount as the registry writes it: money with two places, others without trailing zeros."""
    if UNITS[unit] == _MONEY_PLACES:
        return f"{amount:.2f}"
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_budget(amounts: Mapping[str, Decimal]) -> str:
    """Format the list for a header."""
    return ", ".join(f"{unit}={format_amount(unit, amount)}" for unit, amount in amounts.items())


def exceeded_units(cost: Mapping[str, Decimal], limit: Mapping[str, Decimal]) -> list[str]:
    """Return the units in which a cost exceeds a limit. A unit that only one of the two names limits nothing."""
    return [unit for unit, bound in limit.items() if unit in cost and cost[unit] > bound]
