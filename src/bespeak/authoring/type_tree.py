"""What annotations are made of, in the terms of msgspec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeGuard
from uuid import UUID

from msgspec import inspect as kinds

from bespeak.errors import ContractError
from bespeak.schema.violation import shorten

Object = kinds.StructType | kinds.DataclassType | kinds.TypedDictType | kinds.NamedTupleType

PLAIN_TYPES: Final = (bool, int, float, str, UUID, date, datetime, time, timedelta, Decimal)
"""Types that are what they are wherever they stand: most annotations, and there is nothing to look for in them."""


def is_plain(annotation: Any) -> TypeGuard[type]:
    """Whether an annotation is one of the plain types. Others need not be hashable."""
    return isinstance(annotation, type) and annotation in PLAIN_TYPES


def read_types(annotations: Iterable[Any]) -> tuple[kinds.Type, ...]:
    """What annotations say. Raises ContractError when one of them is nothing that JSON data can become."""
    try:
        return kinds.multi_type_info(annotations)
    except TypeError as error:
        raise ContractError(f"an annotation cannot be read from JSON: {reason(error)}") from None


def reason(error: Exception) -> str:
    """What msgspec says against a type: its last line, the others are advice to whoever calls it."""
    return shorten(str(error).splitlines()[-1])


def walk(found: Iterable[kinds.Type], seen: set[Any] | None = None) -> Iterator[kinds.Type]:
    """Every type that types are made of; one with fields comes once."""
    seen = set() if seen is None else seen
    for kind in found:
        if isinstance(kind, Object):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
        yield kind
        yield from walk(_parts(kind), seen)


def _parts(kind: kinds.Type) -> Iterable[kinds.Type]:
    match kind:
        case kinds.Metadata(type=inner):
            return (inner,)
        case kinds.CollectionType(item_type=item):
            return (item,)
        case kinds.TupleType(item_types=items):
            return items
        case kinds.DictType(key_type=key, value_type=value):
            return (key, value)
        case kinds.UnionType(types=types):
            return types
    return (field.type for field in kind.fields) if isinstance(kind, Object) else ()
