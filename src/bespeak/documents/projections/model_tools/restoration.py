"""Arguments of a model, converted back to what the contract describes."""

from __future__ import annotations

from typing import Any, Final

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.documents.projections.model_tools.document import (
    MAP,
    OPTIONAL,
    RENAMED,
    REST,
    WRAPPED,
    Definitions,
    Document,
    Node,
    resolved,
    types,
)

_PAIR: Final = frozenset({"key", "value"})


class RepeatedMemberError(ValueError):
    """A list of pairs has a key twice."""


class Restorer:
    """Converts values of one converted schema back. Values that do not follow it are returned as they are."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._schemas: Definitions = document.schema().get("$defs", {})
        self._validators: dict[int, Validator | None] = {}

    def restore(self, value: Any) -> Any:
        """Convert a value back. Raises RepeatedMemberError if it would have a member twice."""
        return self._restored(value, self._document.root)

    def _restored(self, value: Any, node: Node) -> Any:
        node = resolved(node, self._document.definitions)
        if not isinstance(value, dict | list):
            return value
        if "anyOf" in node:
            return self._restored(value, self._chosen(value, node["anyOf"]))
        if isinstance(value, dict):
            return self._object(value, node) if "object" in types(node) else value
        if "array" not in types(node):
            return value
        items = [self._restored(item, self._item(node, at)) for at, item in enumerate(value)]
        return _members(items) if MAP in node and all(map(_is_pair, items)) else items

    def _object(self, value: dict[str, Any], node: Node) -> Any:
        if WRAPPED in node and value.keys() == {node[WRAPPED]}:
            return self._restored(value[node[WRAPPED]], node["properties"][node[WRAPPED]])
        names, optional = dict(node.get(RENAMED, ())), frozenset(node.get(OPTIONAL, ()))
        made: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, part in value.items():
            if part is None and name in optional:
                continue
            found = self._restored(part, self._member(node, name))
            if name == node.get(REST) and isinstance(found, list) and all(map(_is_pair, found)):
                others = _members(found)
            else:
                made[names.get(name, name)] = found
        for name in made.keys() & others.keys():
            raise RepeatedMemberError(f"{name[:80]!r} is given twice")
        return made | others

    def _member(self, node: Node, name: str) -> Node:
        found = node.get("properties", {}).get(name, node.get("additionalProperties"))
        return found if isinstance(found, dict) else {}

    def _item(self, node: Node, at: int) -> Node:
        first: list[Node] = node.get("prefixItems", [])
        others: Node = node.get("items", {})
        return first[at] if at < len(first) else others

    def _chosen(self, value: Any, options: list[Node]) -> Node:
        """Return the alternative that a value meets, else the only one of its type, else one that changes nothing."""
        for option in options:
            validator = self._validator(option)
            if validator is not None and validator.is_valid(value):
                return option
        kind = "object" if isinstance(value, dict) else "array"
        fitting = [option for option in options if kind in types(resolved(option, self._document.definitions))]
        return fitting[0] if len(fitting) == 1 else {}

    def _validator(self, option: Node) -> Validator | None:
        key = id(option)
        if key not in self._validators:
            found = compile_schema({**Document(option, {}).schema(), "$defs": self._schemas})
            self._validators[key] = found if isinstance(found, Validator) else None
        return self._validators[key]


def _is_pair(item: Any) -> bool:
    return isinstance(item, dict) and item.keys() == _PAIR and isinstance(item["key"], str)


def _members(pairs: list[Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pair in pairs:
        if pair["key"] in made:
            raise RepeatedMemberError(f"{pair['key'][:80]!r} is given twice")
        made[pair["key"]] = pair["value"]
    return made
