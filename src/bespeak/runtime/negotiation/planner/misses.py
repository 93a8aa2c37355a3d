"""Misses: which field no plan covers, why, and which endpoint came closest."""

from __future__ import annotations

from typing import Final

from bespeak.runtime.negotiation.plan import Miss
from bespeak.runtime.negotiation.planner.field import Field, alternatives
from bespeak.runtime.negotiation.planner.operation import Operation
from bespeak.runtime.negotiation.planner.search import Search

_COUNTED: Final = 12
"""Wanted fields by which the nearest endpoint is chosen."""


def nearest(search: Search, fields: tuple[Field, ...], text: str) -> Miss:
    """Return why the first of the fields that no operation can supply is missing."""
    for field in fields:
        providers = search.providers(field)
        if providers:
            continue
        operation = _same_name(search, field)
        reason = f"No usable endpoint yields `{field.name}`" + (f" of a {_noun(field)}." if _noun(field) else ".")
        if operation is not None and _mistyped(search, field, operation):
            reason = f"`{operation.endpoint}` yields `{field.name}`, but of another type."
        return Miss(field=field.text, reason=reason, nearest=None if operation is None else operation.endpoint)
    for field in fields:
        for _, operation, _ in search.providers(field)[:1]:
            lacking = [
                f"`{one.name}`" for one in operation.required if not search.at_hand(one, search.given, operation)
            ]
            reason = (
                f"`{operation.endpoint}` yields it, but needs {', '.join(lacking)}."
                if lacking
                else "It cannot be combined with the rest."
            )
            return Miss(field=text, reason=reason, nearest=operation.endpoint)
    return Miss(field=text, reason="No usable endpoint yields it.")


def _noun(field: Field) -> str:
    return field.readings[0].noun.replace("_", " ") if field.readings else ""


def _same_name(search: Search, field: Field) -> Operation | None:
    """Return the closest operation that yields a field of this meaning, or only of this name."""
    meant = [
        operation
        for reading in alternatives(field, search.index.vocabulary)
        for operation, _ in search.index.yielding(reading)
        if not operation.impact
    ]
    near = meant or [operation for reading in field.readings for operation in search.index.near(reading.attribute)]
    wanted = [one.attributes for one in search.wish.wanted[:_COUNTED]]

    def closeness(operation: Operation) -> tuple[bool, int, int]:
        yielded = sum(not operation.attributes.isdisjoint(attributes) for attributes in wanted)
        return operation.resource.noun == search.wish.noun, yielded, -operation.number

    return max((one for one in near if search.allows(one)), key=closeness, default=None)


def _mistyped(search: Search, field: Field, operation: Operation) -> bool:
    readings = alternatives(field, search.index.vocabulary)
    return any(one is operation for reading in readings for one, _ in search.index.yielding(reading))
