"""Objects described in parts (`allOf`) as one object: closed parts would refuse each other's properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.contract.schema.closing import is_closed
from bespeak.documents.openapi.nullability import WORDS

_PLAIN: Final = WORDS | {"type", "properties", "required", "additionalProperties"}
"""Keywords of a part that can be merged."""

_MOST: Final = 1_000
"""Maximum number of properties in a merged object; larger parts stay references, to avoid copies."""


def merge_objects(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Merge parts into one object, closed if one of them is; return None if they are not plain objects.

    The first part may be the schema around the `allOf`: texts of an earlier part take precedence.
    """
    if not all(_is_plain(part) for part in parts) or sum(len(part.get("properties", ())) for part in parts) > _MOST:
        return None
    further = [part["additionalProperties"] for part in parts if isinstance(part.get("additionalProperties"), dict)]
    if any(one != further[0] for one in further[1:]):
        return None
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update({name: part[name] for name in part if name in WORDS and name not in merged})
    merged["type"] = "object"
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for part in parts:
        for name, schema in part.get("properties", {}).items():
            properties[name] = _both(properties[name], schema) if name in properties else schema
        required.update(dict.fromkeys(part.get("required", ())))
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = list(required)
    if any(part.get("additionalProperties") is False for part in parts):
        merged["additionalProperties"] = False
    elif further:
        merged["additionalProperties"] = further[0]
    return merged


def opened(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part without the keyword that closes it."""
    closing = ("additionalProperties", "unevaluatedProperties") if is_closed(part) else ()
    return {name: value for name, value in part.items() if name not in closing}


def _is_plain(part: Mapping[str, Any]) -> bool:
    return part.keys() <= _PLAIN and part.get("type", "object") == "object"


def _both(one: Any, other: Any) -> Any:
    """Merge two descriptions of a property. A part that only adds texts does not count as a description."""
    if one == other or not other.keys() - WORDS:
        return {**other, **one}
    if not one.keys() - WORDS:
        return {**one, **other}
    bare_one = {name: value for name, value in one.items() if name not in WORDS}
    bare_other = {name: value for name, value in other.items() if name not in WORDS}
    if bare_one == bare_other:
        return {**one, **other}
    return {"allOf": [one, other]}
