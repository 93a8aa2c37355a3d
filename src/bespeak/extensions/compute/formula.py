"""Formulas of CALCULATE: structured, and computed with decimal numbers, so that money is exact.

A formula is a number, a text that is a decimal number, `{"input": "price"}`, or an operation:
`{"multiply": [{"input": "price"}, "1.19"]}`.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import reduce
from typing import Any, Final

_DEEPEST: Final = 32
_MOST_PARTS: Final = 1000
_MOST_DIGITS: Final = 400  # of an input, so that no input needs more time than another
_EXACT: Final = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-999, Emax=999)

Values = Sequence[Decimal]
_OPERATIONS: Final[Mapping[str, tuple[int, int, Callable[[Values], Decimal]]]] = {
    # Name: the fewest and the most values, and what becomes of them.
    "add": (1, 1000, lambda values: reduce(_EXACT.add, values)),
    "subtract": (2, 2, lambda values: _EXACT.subtract(*values)),
    "multiply": (1, 1000, lambda values: reduce(_EXACT.multiply, values)),
    "divide": (2, 2, lambda values: _EXACT.divide(*values)),
    "power": (2, 2, lambda values: _EXACT.power(*values)),
    "negate": (1, 1, lambda values: _EXACT.minus(values[0])),
    "absolute": (1, 1, lambda values: _EXACT.abs(values[0])),
    "minimum": (1, 1000, min),
    "maximum": (1, 1000, max),
    "average": (1, 1000, lambda values: _EXACT.divide(reduce(_EXACT.add, values), Decimal(len(values)))),
    "percent": (2, 2, lambda values: _EXACT.divide(_EXACT.multiply(*values), Decimal(100))),
    "round": (2, 2, lambda values: round_to(values[0], _places(values[1]))),
}
_COMPARISONS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "less": lambda one, other: one < other,
    "at_most": lambda one, other: one <= other,
    "equal": lambda one, other: one == other,
    "at_least": lambda one, other: one >= other,
    "greater": lambda one, other: one > other,
}
NAMES: Final = (*_OPERATIONS, "if")


class FormulaError(Exception):
    """Raised for a formula that is not valid (`is_formula`), or that has no value for its inputs."""

    def __init__(self, message: str, *, is_formula: bool = True) -> None:
        super().__init__(message)
        self.is_formula = is_formula


def compute(formula: Any, inputs: Mapping[str, Any] | None) -> Decimal:
    """Return the value of a formula; without inputs, only check it. Raises FormulaError."""
    parts = [0]
    try:
        return _compute(formula, inputs, 0, parts)
    except decimal.DivisionByZero:
        raise FormulaError("it divides by zero", is_formula=False) from None
    except decimal.DecimalException:
        raise FormulaError("a result is not a number, or has more than 1,000 digits", is_formula=False) from None


def _compute(formula: Any, inputs: Mapping[str, Any] | None, depth: int, parts: list[int]) -> Decimal:
    parts[0] += 1
    if depth > _DEEPEST or parts[0] > _MOST_PARTS:
        raise FormulaError(f"it has more than {_DEEPEST} levels or {_MOST_PARTS} parts")
    if not isinstance(formula, Mapping):
        return read_number(formula, "the formula")
    if len(formula) != 1:
        raise FormulaError(f"an operation has one name: {', '.join(NAMES)}; got {', '.join(formula)[:80] or 'none'}")
    ((name, given),) = formula.items()
    if name == "input":
        if inputs is None and isinstance(given, str):
            return Decimal(0)
        if inputs is None or not isinstance(given, str) or given not in inputs:
            raise FormulaError(f"it names the input {given!r:.80}; there are {', '.join(inputs or ()) or 'none'}"[:500])
        return read_number(inputs[given], f"the input {given!r:.80}", is_formula=False)
    if name == "if":
        return _choose(given, inputs, depth, parts)
    if name not in _OPERATIONS:
        raise FormulaError(f"{name[:80]!r} is not an operation; use one of {', '.join(NAMES)}")
    least, most, operation = _OPERATIONS[name]
    listed = _listed(name, given, inputs)
    if not least <= len(listed) <= most:
        number = f"{least}" if least == most else f"{least} to {most}"
        raise FormulaError(f"{name} takes {number} values; got {len(listed)}")
    values = [_compute(one, inputs, depth + 1, parts) for one in listed]
    return Decimal(0) if inputs is None else operation(values)


def _listed(name: str, given: Any, inputs: Mapping[str, Any] | None) -> Sequence[Any]:
    """Return the values of an operation: a list of formulas, or an input that is a list of numbers."""
    if isinstance(given, Mapping) and set(given) == {"input"}:
        listed = [given] * _OPERATIONS[name][0] if inputs is None else inputs.get(given["input"])
        given = listed if isinstance(listed, list) else given
    if not isinstance(given, list):
        raise FormulaError(f"{name} takes a list; got {given!r:.60}")
    return given


def _choose(given: Any, inputs: Mapping[str, Any] | None, depth: int, parts: list[int]) -> Decimal:
    """Compute `{"if": [{"less": [a, b]}, then, else]}`."""
    test = given[0] if isinstance(given, list) and len(given) == 3 else None
    name, pair = next(iter(test.items())) if isinstance(test, Mapping) and len(test) == 1 else ("", None)
    if name not in _COMPARISONS or not isinstance(pair, list) or len(pair) != 2:
        form = f"a comparison ({', '.join(_COMPARISONS)}) of two values, a value if it holds, and one if not"
        raise FormulaError(f"if takes {form}")
    one, other = (_compute(part, inputs, depth + 1, parts) for part in pair)
    chosen = given[1:] if inputs is None else (given[1 if _COMPARISONS[name](one, other) else 2],)
    return [_compute(part, inputs, depth + 1, parts) for part in chosen][-1]


def read_number(value: Any, what: str, *, is_formula: bool = True) -> Decimal:
    """Return a number of JSON, or of a text that is one. Its decimals are those that were written."""
    number = None
    if isinstance(value, int | float | str) and not isinstance(value, bool) and len(str(value)) <= _MOST_DIGITS:
        try:
            number = Decimal(str(value))
        except decimal.InvalidOperation:
            number = None
    if number is None or not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise FormulaError(f"{what} must be a number; got {value!r:.60}", is_formula=is_formula)
    return number


def round_to(value: Decimal, places: int) -> Decimal:
    """Round half up, as invoices do."""
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=1100))


def write_number(value: Decimal, places: int | None = None) -> str:
    """Write a number without an exponent, with these decimal places or with those that it needs."""
    return f"{_EXACT.normalize(value) if places is None else round_to(value, places):f}"


def _places(value: Decimal) -> int:
    if value != value.to_integral_value() or not 0 <= value <= 20:
        raise FormulaError(f"round takes 0 to 20 decimal places; got {value}")
    return int(value)
