"""Pruning: JSON data without the fields that its schema does not admit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.reference import resolve

_MOST_REFERENCES: Final = 8
_Pruned = tuple[Any, frozenset[str]]
"""A value without undeclared fields, and their names."""
_Seen = dict[tuple[int, int], _Pruned]
"""Values that were pruned, by the identities of value and schema."""


class Pruner:
    """Drops the fields that a schema refuses by `additionalProperties: false`, at every depth.

    Of alternatives (`anyOf`, `oneOf`) a value gets one: the one that keeps most of its fields, or the first of several.
    Fields of two alternatives are never mixed.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._options: dict[int, Validator | None] = {}

    def prune(self, value: Any) -> _Pruned:
        """Return the value without undeclared fields, and their names. The result need not be valid."""
        return self._prune(value, self._schema, {})

    def _prune(self, value: Any, schema: Any, seen: _Seen) -> _Pruned:
        if not isinstance(value, dict | list | tuple) or not isinstance(schema, dict):
            return value, frozenset()
        # Without the memory, alternatives inside of alternatives would take exponential time.
        key = (id(value), id(schema))
        found = seen.get(key)
        if found is None:
            node = resolve(schema, self._schema, most=_MOST_REFERENCES)
            options = node.get("anyOf") or node.get("oneOf")
            if options:
                found = self._choose(value, options, seen)
            elif isinstance(value, dict):
                found = self._prune_fields(value, node, seen)
            else:
                found = self._prune_items(value, node, seen)
            seen[key] = found
        return found

    def _choose(self, value: Any, options: list[Any], seen: _Seen) -> _Pruned:
        best: _Pruned | None = None
        for option in options:
            pruned = self._prune(value, option, seen)
            more = best is None or (isinstance(value, dict) and len(pruned[0]) > len(best[0]))
            if more and self._admits(option, pruned[0]):
                best = pruned
        return (value, frozenset()) if best is None else best  # not valid, with or without undeclared fields

    def _admits(self, option: Any, value: Any) -> bool:
        validator = self._options.get(id(option))
        if validator is None:
            compiled = compile_schema({**option, "$defs": self._schema.get("$defs", {})} if option is not True else {})
            if not isinstance(compiled, Validator):
                return False
            validator = self._options[id(option)] = compiled
        return validator.is_valid(value)

    def _prune_fields(self, value: dict[str, Any], node: Any, seen: _Seen) -> _Pruned:
        declared = node.get("properties", {})
        others = node.get("additionalProperties", True)
        patterns = list(node.get("patternProperties", {}).values())
        kept: dict[str, Any] = {}
        dropped: frozenset[str] = frozenset()
        for name, part in value.items():
            if name not in declared and patterns:
                kept[name], below = self._choose(part, patterns, seen)
            elif (schema := declared.get(name, others)) is not False:
                kept[name], below = self._prune(part, schema, seen)
            else:
                below = frozenset((name,))
            dropped |= below
        return kept, dropped

    def _prune_items(self, value: list[Any] | tuple[Any, ...], node: Any, seen: _Seen) -> _Pruned:
        first = node.get("prefixItems", ())
        rest = node.get("items", True)
        kept: list[Any] = []
        dropped: frozenset[str] = frozenset()
        for index, part in enumerate(value):
            schema = first[index] if index < len(first) else rest
            if schema is False:
                dropped |= {f"[{index}]"}
                continue
            pruned, below = self._prune(part, schema, seen)
            kept.append(pruned)
            dropped |= below
        return kept, dropped
