"""Misses: which field no plan covers, why, and which endpoint came closest."""

from __future__ import annotations

from bespeak.runtime.negotiation.plan import Miss
from bespeak.runtime.negotiation.planner.field import Field, alternatives
from bespeak.runtime.negotiation.planner.operation import Operation
from bespeak.runtime.negotiation.planner.search import Search


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
    """Return an allowed operation that yields a field of this meaning, or only of this name."""
    for reading in alternatives(field, search.index.vocabulary):
        for operation, _ in search.index.yielding(reading):
            if search.allows(operation) and not operation.impact:
                return operation
    near = (search.index.near(reading.attribute) for reading in field.readings)
    return next((one for one in near if one is not None and search.allows(one)), None)


def _mistyped(search: Search, field: Field, operation: Operation) -> bool:
    readings = alternatives(field, search.index.vocabulary)
    return any(one is operation for reading in readings for one, _ in search.index.yielding(reading))
