"""Schemas with local references and single-part `allOf` resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.reference import target

Schema = Mapping[str, Any]

ANNOTATIONS: Final = frozenset({"title", "description", "examples", "$comment", "default", "deprecated"})
"""Keywords that may differ between a reference and its target without saying anything else about values."""

DEFINITIONS: Final = frozenset({"$defs", "definitions", "$schema", "$id", "$anchor"})
"""Keywords that say nothing about values by themselves."""

_NOTHING: Final[Schema] = {"not": {}}
_LONGEST_CHAIN: Final = 32


class References:
    """The references of one document. Each node is resolved once, so that the same node gives the same schema."""

    __slots__ = ("_resolved", "_root")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._resolved: dict[int, tuple[Any, Schema]] = {}

    def resolve(self, node: Any) -> Schema:
        """Return the schema a node stands for. A `$ref` left in it dangles or is circular."""
        known = self._resolved.get(id(node))
        if known is None:
            # The node is kept beside its schema: its id stays its own as long as it lives.
            known = self._resolved[id(node)] = (node, self._follow(node))
        return known[1]

    def _follow(self, node: Any) -> Schema:
        schema = _as_schema(node)
        for _ in range(_LONGEST_CHAIN):
            if "$ref" in schema:
                named = target(schema["$ref"], self._root)
                if named is None:
                    return schema
                schema = _merged(_as_schema(named), {key: value for key, value in schema.items() if key != "$ref"})
            elif isinstance(parts := schema.get("allOf"), list) and len(parts) == 1:
                rest = {key: value for key, value in schema.items() if key != "allOf"}
                merged = _merged(_as_schema(parts[0]), rest)
                if "allOf" in merged and len(merged["allOf"]) > 1:
                    return schema
                schema = merged
            else:
                return schema
        return schema


def _as_schema(node: Any) -> Schema:
    """Return booleans as schemas: true allows everything, false nothing."""
    if isinstance(node, Mapping):
        return node
    return _NOTHING if node is False else {}


def _merged(target: Schema, rest: Schema) -> Schema:
    """Merge two schemas; if they contradict each other, return both as parts of `allOf`."""
    said = {key: value for key, value in rest.items() if key not in DEFINITIONS}
    base = {key: value for key, value in target.items() if key not in DEFINITIONS}
    if any(key in base and base[key] != value for key, value in said.items() if key not in ANNOTATIONS):
        return {"allOf": [base, said]}
    return {**base, **said}
