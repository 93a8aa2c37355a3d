"""Members and items that a schema describes, through all its combinations and references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.steps import Steps
from bespeak.contract.schema.subschemas import nodes

_ITEMS: Final = ("items", "contains", "unevaluatedItems")
_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
_FIXING: Final = frozenset(
    {"const", "contains", "dependentRequired", "dependentSchemas", "enum", "if", "minProperties", "not"}
)
"""Keywords that may refuse an object because an optional part is missing, at any depth."""
_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf", "if", "dependentSchemas"})
_RESTRICTING: Final = frozenset({"type", "const", "enum", "items", "prefixItems"})
"""Keywords that restrict a schema without properties to something other than any object."""


def members_of(schema: Mapping[str, Any]) -> Members:
    """Return the members of the values that a schema describes."""
    # A copy of plain dictionaries: objects cached by identity must neither change nor be freed.
    return _Document(msgspec.json.decode(msgspec.json.encode(schema))).root


def without_empty(value: Any, members: Members) -> Any:
    """Remove optional members that are null or empty strings, lists or objects, at every depth.

    Parts whose schema counts or compares members stay unchanged. The schema may still demand a removed member in ways
    that no single member shows: validate the result if it must conform.
    """
    if members.fixed:
        return value
    if type(value) is dict:
        kept = {}
        for name, item in value.items():
            left = without_empty(item, members.below(name)) if type(item) in _CONTAINERS else item
            if name in members.required or not (left is None or (not left and type(left) in _EMPTY)):
                kept[name] = left
        return kept
    element = members.element or members.anything
    return [without_empty(item, element) if type(item) in _CONTAINERS else item for item in value]


_CONTAINERS: Final = (dict, list)
_EMPTY: Final = (str, dict, list)


class Members:
    """The members that all subschemas of one value describe. Alternatives are combined."""

    def __init__(self, document: _Document, judges: tuple[dict[str, Any], ...]) -> None:
        self._document = document
        self._judges = judges
        self._below: dict[str, Members] = {}
        self.names: Mapping[str, None] = dict.fromkeys(
            name for judge in judges for name, schema in _table(judge, "properties").items() if schema is not False
        )
        """Declared members, in order."""
        self.required: frozenset[str] = frozenset(
            name for judge in judges for name in judge.get("required", ()) if isinstance(name, str)
        )
        """Members that any of the subschemas requires."""
        self.types: frozenset[str] = frozenset(
            name for judge in judges for name in _types(judge) if isinstance(name, str)
        )
        """Named types; empty if any type is allowed."""
        self.fixed = any(not _FIXING.isdisjoint(judge) or judge.get("uniqueItems") is True for judge in judges)
        """True if a value may be refused because an optional part is missing."""

    @cached_property
    def formats(self) -> frozenset[str]:
        """Named formats; empty if any is allowed. In a union without formats everywhere, any is."""
        found = [judge["format"] for judge in self._judges if isinstance(judge.get("format"), str)]
        typed = [judge for judge in self._judges if "type" in judge and judge["type"] != "null"]
        return frozenset(found) if len(found) >= len(typed) else frozenset()

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """Listed values that are texts, numbers or booleans; empty if others are allowed."""
        lists = [judge.get("enum", [judge["const"]] if "const" in judge else None) for judge in self._judges]
        typed = [judge for judge in self._judges if "type" in judge and judge["type"] != "null"]
        found = [list_ for list_ in lists if isinstance(list_, list)]
        if not found or len(found) < len(typed):
            return ()
        return tuple(value for list_ in found for value in list_ if isinstance(value, (str, int, float, bool)))

    @property
    def has_alternatives(self) -> bool:
        """True if not every subschema has to be met, so that no single requirement is certain."""
        return any(not _ALTERNATIVES.isdisjoint(judge) for judge in self._judges)

    @property
    def anything(self) -> Members:
        """Members of an unrestricted value."""
        return self._document.view(())

    def declares(self, name: str) -> bool:
        """Return True if a member is declared, by its name or by a matching pattern."""
        if name in self.names:
            return True
        patterns = {pattern for judge in self._judges for pattern in _table(judge, "patternProperties")}
        fitting = compile_schema({"patternProperties": dict.fromkeys(sorted(patterns), False)}) if patterns else None
        return isinstance(fitting, Validator) and not fitting.is_valid({name: None})

    @cached_property
    def takes_any(self) -> bool:
        """True if undeclared members are expected, beyond the openness of every output.

        Outputs are open so that fields can be added later: if some are declared, others do not exist yet.
        """
        if any(_table(judge, "patternProperties") or _has_schema(judge, _OTHERS) for judge in self._judges):
            return True
        if self.names:
            return False
        open_ones = [judge for judge in self._judges if judge.get("additionalProperties") is not False]
        if any("object" in _types(judge) for judge in open_ones):
            return True
        return len(open_ones) == len(self._judges) and all(_RESTRICTING.isdisjoint(judge) for judge in self._judges)

    @cached_property
    def element(self) -> Members | None:
        """Items of a list; None if the value is not a list."""
        found = [judge[key] for judge in self._judges for key in _ITEMS if key in judge]
        found += [item for judge in self._judges for item in judge.get("prefixItems", ())]
        if found:
            return self._document.view(found)
        return self.anything if "array" in self.types or self is self.anything else None

    def below(self, name: str) -> Members:
        """Return the description of a member, declared or not."""
        known = self._below.get(name)
        if known is None:
            found = []
            for judge in self._judges:
                declared = _table(judge, "properties")
                found += [declared[name]] if name in declared else [judge[key] for key in _OTHERS if key in judge]
                # The validator decides which pattern matches; here each may.
                found += _table(judge, "patternProperties").values()
            known = self._document.view(found)
            if name in self.names:  # names invented by callers are not cached
                self._below[name] = known
        return known

    def step(self, name: str) -> Members | None:
        """Return the member of a name in the value or in each item of a list; None if there cannot be one."""
        found = [each.below(name) for each in self._through() if name in each.names or each.takes_any]
        return self._document.join(found) if found else None

    @property
    def reachable(self) -> list[str]:
        """Declared members of the value or of each item of a list."""
        return list(dict.fromkeys(name for each in self._through() for name in each.names))

    def _through(self) -> Iterator[Members]:
        """Yield the value itself, its items, their items, and so on."""
        seen: set[int] = set()
        each: Members | None = self
        while each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            each = each.element


class _Document:
    """One schema. The same subschemas give the same Members, so that cycles end."""

    def __init__(self, schema: Any) -> None:
        plain = schema if isinstance(schema, dict) else {}
        self._steps = Steps(list(nodes(plain)))
        self._views: dict[frozenset[int], Members] = {}
        self.root = self.view((plain,))

    def view(self, schemas: Iterable[Any]) -> Members:
        """Combine schemas of the same value, with everything they refer to."""
        judges: dict[int, dict[str, Any]] = {}
        waiting = [schema for schema in schemas if isinstance(schema, dict)]
        while waiting:
            judge = waiting.pop()
            if id(judge) not in judges:
                judges[id(judge)] = judge
                # `not` says nothing about the members that a value has.
                waiting += [step for step in reversed(self._steps.of(judge)) if step is not judge.get("not")]
        return self._known(judges)

    def join(self, several: list[Members]) -> Members:
        """Combine the descriptions of several places."""
        if len(several) == 1:
            return several[0]
        return self._known({id(judge): judge for each in several for judge in each._judges})

    def _known(self, judges: dict[int, dict[str, Any]]) -> Members:
        key = frozenset(judges)
        known = self._views.get(key)
        if known is None:
            known = self._views[key] = Members(self, tuple(judges.values()))
        return known


def _table(judge: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = judge.get(key)
    return found if isinstance(found, dict) else {}


def _types(judge: Mapping[str, Any]) -> Iterable[Any]:
    found = judge.get("type", ())
    return (found,) if isinstance(found, str) else found


def _has_schema(judge: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    """Return True if one of the keywords describes members instead of only allowing or forbidding them."""
    return any(isinstance(judge.get(key), dict) for key in keys)
