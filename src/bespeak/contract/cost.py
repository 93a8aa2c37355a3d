"""Maximum cost of one call of an endpoint, in the units of Budget-Limit (core 7.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from bespeak.protocol.exchange.budget import ONE_CALL, UNITS, format_amount, format_budget, parse_amount
from bespeak.protocol.fault import Fault
from bespeak.text.diagnostics.brief import brief


@dataclass(frozen=True, slots=True)
class Cost:
    """Amounts by unit, in the order of declaration."""

    amounts: Mapping[str, Decimal]

    def to_json(self) -> dict[str, int | str]:
        """Write the block of a manifest: whole numbers as numbers, others as text, so that no reader rounds them."""
        return {
            unit: format_amount(unit, amount) if UNITS[unit] else int(amount) for unit, amount in self.amounts.items()
        }

    def __str__(self) -> str:
        """Write the value of the header Cost-Estimate."""
        return format_budget(self.amounts)


def read_cost(declared: Mapping[str, object]) -> tuple[Cost | None, list[Fault]]:
    """Read a declared cost, `{"tokens": 500, "USD": "0.02"}`, and its faults; None if nothing is declared."""
    amounts: dict[str, Decimal] = {}
    faults: list[Fault] = []
    for unit, value in declared.items():
        amount = _read(unit, value)
        if isinstance(amount, str):
            faults.append(Fault(amount, unit))
        else:
            amounts[unit] = amount
    return Cost(amounts) if amounts and not faults else None, faults


def _read(unit: str, value: object) -> Decimal | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return f"the cost in {brief(unit)} must be a number; got {brief(value)}"
    # The shortest text of the float is what its author wrote: 0.02, not 0.0200000000000000004.
    amount = parse_amount(unit, value if isinstance(value, str) else _digits(value))
    if isinstance(amount, Decimal) and unit == "calls" and amount < ONE_CALL:
        return "the cost in 'calls' must be at least 1"
    return amount


def _digits(value: float | Decimal) -> str:
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python converts
        return "a number with too many digits"
