"""Size and range limits of a schema, and which of two is stricter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final, Literal, TypeGuard

from bespeak.checks.evolution.change import canonical
from bespeak.checks.evolution.schema_reference import Schema

LimitChange = Literal["tightened", "loosened", "changed"]

_SIZES: Final = ("Length", "Items", "Properties")


def compare_limits(old: Schema, new: Schema) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    """Yield every limit that differs: its keyword, its old and new values, and the direction."""
    yield from _bound("minimum", old, new, 1)
    yield from _bound("maximum", old, new, -1)
    for what in _SIZES:
        yield from _size(f"min{what}", old, new, 1)
        yield from _size(f"max{what}", old, new, -1)
    yield from _multiple(old, new)
    if bool(old.get("uniqueItems")) != bool(new.get("uniqueItems")):
        stricter = bool(new.get("uniqueItems"))
        yield "uniqueItems", not stricter, stricter, "tightened" if stricter else "loosened"


def _bound(keyword: str, old: Schema, new: Schema, sign: int) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    """Combine `minimum` and `exclusiveMinimum` into the stricter bound."""
    before, after = _strictest(keyword, old, sign), _strictest(keyword, new, sign)
    if before != after:
        verdict: LimitChange = "tightened" if after > before else "loosened"
        yield keyword, _shown(before, sign), _shown(after, sign), verdict


def _strictest(keyword: str, schema: Schema, sign: int) -> tuple[float, bool]:
    """Return a sort key for a bound: a greater pair admits fewer numbers."""
    included, excluded = schema.get(keyword), schema.get(f"exclusive{keyword.capitalize()}")
    return max(
        (sign * included, False) if _is_number(included) else (-math.inf, False),
        (sign * excluded, True) if _is_number(excluded) else (-math.inf, False),
    )


def _shown(bound: tuple[float, bool], sign: int) -> float | str | None:
    value, excluded = bound
    if value == -math.inf:
        return None
    return f"{'more' if sign > 0 else 'less'} than {sign * value}" if excluded else sign * value


def _size(keyword: str, old: Schema, new: Schema, sign: int) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    nothing = 0 if sign > 0 else math.inf
    before = old[keyword] if _is_number(old.get(keyword)) else nothing
    after = new[keyword] if _is_number(new.get(keyword)) else nothing
    if before != after:
        stricter = sign * after > sign * before
        yield keyword, old.get(keyword), new.get(keyword), "tightened" if stricter else "loosened"


def _multiple(old: Schema, new: Schema) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if canonical(before) == canonical(after):
        return
    one, other = _exactly(before), _exactly(after)
    verdict: LimitChange = "changed"
    if before is None or (one and other and (other / one).denominator == 1):
        verdict = "tightened"
    elif after is None or (one and other and (one / other).denominator == 1):
        verdict = "loosened"
    yield "multipleOf", before, after, verdict


def _exactly(value: Any) -> Fraction | None:
    """Return the decimal number as written: 0.1 is a tenth, not the nearest binary fraction."""
    if not _is_number(value):
        return None
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _is_number(value: Any) -> TypeGuard[int | float]:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and not (isinstance(value, float) and not math.isfinite(value))
    )
