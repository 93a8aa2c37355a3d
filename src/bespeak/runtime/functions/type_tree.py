"""The types that annotations consist of, in terms of msgspec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_origin
from uuid import UUID

import msgspec
from msgspec import inspect as kinds

from bespeak.contract.schema.violation import shorten
from bespeak.errors import ContractError

Object = kinds.StructType | kinds.DataclassType | kinds.TypedDictType | kinds.NamedTupleType

PLAIN_TYPES: Final = frozenset({bool, int, float, str, UUID, date, time, timedelta, Decimal, NoneType})
_CONTAINERS: Final = frozenset({Annotated, Union, UnionType, list, set, frozenset, tuple, dict})


def is_plain(annotation: Any) -> bool:
    """Return True if an annotation contains no object, datetime or foreign type, and needs no inspection."""
    if type(annotation) is type:
        return annotation in PLAIN_TYPES
    return get_origin(annotation) in _CONTAINERS and all(is_plain(part) for part in annotation.__args__)


def read_types(annotations: Sequence[Any]) -> tuple[kinds.Type, ...]:
    """Inspect the annotations that are not plain. Raises ContractError if JSON data cannot be converted to one of
    them.
    """
    try:
        msgspec.msgpack.Decoder(tuple[tuple(annotations)])  # type: ignore[misc]
        return kinds.multi_type_info(kind for kind in annotations if not is_plain(kind))
    except (TypeError, NameError) as error:
        raise ContractError(f"cannot be read from JSON: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Return the last line of a msgspec error, without the type: the others are advice for its caller."""
    return shorten(str(error).splitlines()[-1].partition(" - type `")[0])


def walk(found: Iterable[kinds.Type], seen: set[Any] | None = None) -> Iterator[kinds.Type]:
    """Yield every type that the types consist of; those with fields once."""
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
    if isinstance(kind, kinds.TypedDictType) and (extra := extra_items(kind.cls)) is not None:
        return (*(field.type for field in kind.fields), kinds.type_info(extra))
    return (field.type for field in kind.fields) if isinstance(kind, Object) else ()


def extra_items(kind: Any) -> Any:
    """Return the type of the further fields that a TypedDict admits (PEP 728); None if it says nothing of them."""
    kind = get_origin(kind) or kind
    extra, closed = getattr(kind, "__extra_items__", None), getattr(kind, "__closed__", None)
    if closed:
        return None
    if extra is not None and str(extra).rpartition(".")[2] not in ("NoExtraItems", "Never"):
        return extra
    if closed is False:
        return Any
    bases = getattr(kind, "__orig_bases__", ())
    return next((found for base in bases if (found := extra_items(base)) is not None), None)
