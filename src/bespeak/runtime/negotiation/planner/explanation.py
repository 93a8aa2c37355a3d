"""Explanations: what each step of a plan does, in plain English."""

from __future__ import annotations

from typing import Final

from bespeak.runtime.negotiation.planner.choice import Call, Fixed, Given, Pick, Result, RowValue, Value
from bespeak.runtime.negotiation.planner.draft import Draft, Listing

_COMPARED: Final = {
    "eq": "equals",
    "lt": "is below",
    "lte": "is at most",
    "gt": "is above",
    "gte": "is at least",
    "contains": "contains",
}


def explain(draft: Draft, calls: tuple[Call, ...]) -> tuple[str, ...]:
    """Return a sentence for each step, and one for what is made of the results."""
    numbers = {call: number for number, call in enumerate(calls, 1)}
    found = []
    for number, call in enumerate(calls, 1):
        inputs = [f"{field.name} = {_value(value, numbers)}" for field, value in call.bindings]
        each = " for each row" if call.is_per_row else ""
        sent = f" with {', '.join(inputs)}" if inputs else ""
        found.append(f"Step {number}: call {call.operation.endpoint}{each}{sent}.")
    found += [_listing(listing, numbers) for listing in draft.listings]
    if draft.singles:
        parts = [f"{field.text} = {_value(value, numbers)}" for field, value in draft.singles]
        found.append(f"Result: {'; '.join(parts)}.")
    return tuple(found)


def _listing(listing: Listing, numbers: dict[Call, int]) -> str:
    rows = f"the {listing.rows.dotted} of step {numbers[listing.call]}"
    parts = [f"{one.column.column} {_COMPARED[one.op]} {_value(one.value, numbers)}" for one in listing.filters]
    kept = f" where {' and '.join(parts)}" if parts else ""
    order = f", sorted by the input {listing.sort.name}" if listing.sort else ""
    most = f", at most {listing.limit.name} of them" if listing.limit else ""
    columns = [f"{field.name} = {_value(value, numbers)}" for field, value in listing.columns]
    return f"Result: {listing.table.text} are {rows}{kept}{order}{most}, each with {'; '.join(columns)}."


def _value(value: Value, numbers: dict[Call, int]) -> str:
    if isinstance(value, Given):
        return f"the input {value.field.name}"
    if isinstance(value, Fixed):
        return f"the constant {value.value!r}"
    if isinstance(value, RowValue):
        return f"{value.field.column} of the row"
    assert isinstance(value, Result)
    where = "" if value.pick is None else _pick(value.pick, numbers)
    return f"{value.field.dotted} of step {numbers[value.call]}{where}"


def _pick(pick: Pick, numbers: dict[Call, int]) -> str:
    if pick.matches:
        return " where " + " and ".join(
            f"{one.column.column} equals {_value(one.value, numbers)}" for one in pick.matches
        )
    return " (the first)" if pick.is_first else " (the only one)"
