"""How a value of the original schema is written under a converted one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.projections.model_tools.passes import (
    Mark,
    Node,
    resolved,
    types,
)
from bespeak.documents.projections.model_tools.tools import Conversion, Restorer

MOST = 2_000


def validator(schema: Any) -> Validator:
    found = compile_schema(schema)
    assert isinstance(found, Validator), (schema, found)
    return found


def written(value: Any, conversion: Conversion) -> Any:
    """Return a value that meets the converted schema and is restored to the given one; None if there is none."""
    accepts, restorer = validator(conversion.schema), Restorer(conversion.document)
    for candidate in islice(_forms(value, conversion.document.root, conversion), MOST):
        if accepts.is_valid(candidate) and same(restorer.restore(candidate), value):
            return candidate
    return None


def same(one: Any, other: Any) -> bool:
    """Compare as JSON does: True is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _forms(value: Any, node: Node, conversion: Conversion) -> Iterator[Any]:
    node = resolved(node, conversion.document.definitions)
    if Mark.WRAPPED in node:
        name = node[Mark.WRAPPED]
        yield from ({name: form} for form in _forms(value, node["properties"][name], conversion))
    elif "anyOf" in node:
        for option in node["anyOf"]:
            yield from _forms(value, option, conversion)
    elif isinstance(value, dict) and Mark.MAP in node:
        pairs = [{"key": key, "value": item} for key, item in value.items()]
        yield from _lists(pairs, node, conversion)
    elif isinstance(value, dict) and "object" in types(node):
        yield from _objects(value, node, conversion)
    elif isinstance(value, list) and "array" in types(node):
        yield from _lists(value, node, conversion)
    else:
        yield value


def _lists(value: list[Any], node: Node, conversion: Conversion) -> Iterator[Any]:
    first = node.get("prefixItems", [])
    items = [*first, *[node.get("items", {})] * max(0, len(value) - len(first))]
    yield from map(
        list, product(*(list(islice(_forms(*pair, conversion), 20)) for pair in zip(value, items, strict=False)))
    )


def _objects(value: dict[str, Any], node: Node, conversion: Conversion) -> Iterator[Any]:
    names = {old: new for new, old in node.get(Mark.RENAMED, ())}
    properties = node.get("properties", {})
    forms: dict[str, list[Any]] = {}
    others: dict[str, Any] = {}
    for name, item in value.items():
        new = names.get(name, name)
        if Mark.REST in node and (new not in properties or new == node[Mark.REST]):
            others[name] = item
            continue
        below = properties.get(new, node.get("additionalProperties"))
        forms[new] = list(islice(_forms(item, below if isinstance(below, dict) else {}, conversion), 20))
    if Mark.REST in node:
        pairs = [{"key": key, "value": item} for key, item in others.items()]
        forms[node[Mark.REST]] = list(islice(_forms(pairs, properties[node[Mark.REST]], conversion), 20))
    absent = {one: None for one in node.get(Mark.OPTIONAL, ()) if one not in forms and one in node.get("required", ())}
    for chosen in product(*forms.values()):
        yield {**dict(zip(forms, chosen, strict=True)), **absent}
