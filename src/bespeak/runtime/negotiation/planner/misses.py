"""Misses: which field no plan covers, why, and which endpoint came closest."""

from __future__ import annotations

from typing import Final

from bespeak.runtime.negotiation.plan import Miss
from bespeak.runtime.negotiation.planner.field import Field
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
        operation, is_meant = _closest(search, field)
        reason = f"No usable endpoint yields `{field.name}`" + (f" of a {_noun(field)}." if _noun(field) else ".")
        if operation is not None and is_meant:
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


def _closest(search: Search, field: Field) -> tuple[Operation | None, bool]:
    """Return the closest operation that yields a field of this name, and whether it means the same."""
    meant = [operation for reading in field.readings for operation, _ in search.index.yielding(reading)]
    meant = [operation for operation in meant if not operation.impact and search.allows(operation)]
    named = [operation for reading in field.readings for operation in search.index.near(reading.attribute)]
    wanted = [one.attributes for one in search.wish.wanted[:_COUNTED]]

    def closeness(operation: Operation) -> tuple[bool, int, int]:
        yielded = sum(not operation.attributes.isdisjoint(attributes) for attributes in wanted)
        return operation.resource.noun == search.wish.noun, yielded, -operation.number

    near = meant or [operation for operation in named if search.allows(operation)]
    return max(near, key=closeness, default=None), bool(meant)
