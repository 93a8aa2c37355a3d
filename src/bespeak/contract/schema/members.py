"""What a schema says of the members and the items of a value, whatever combinations and references it says it by."""

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
"""Keywords that may refuse an object because something optional is missing in it, at whatever depth."""
_SAYING: Final = frozenset({"type", "const", "enum", "items", "prefixItems"})
"""Keywords by which a schema without properties says that it means something else than any object."""


def members_of(schema: Mapping[str, Any]) -> Members:
    """The members of the values of a schema that can be used."""
    # A copy of plain dictionaries: what is remembered by identity must not change, nor go away.
    return _Document(msgspec.json.decode(msgspec.json.encode(schema))).root


def without_empty(value: Any, members: Members) -> Any:
    """A value without the optional members that are null, or empty texts, lists or objects, at every depth.

    Where a schema counts or compares what is there, the part stays as it is. The schema may still ask for what no
    single member shows: whoever needs the result to keep it looks.
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
    """What all the subschemas that judge one value say of its members. Alternatives count together."""

    def __init__(self, document: _Document, judges: tuple[dict[str, Any], ...]) -> None:
        self._document = document
        self._judges = judges
        self._below: dict[str, Members] = {}
        self.names: Mapping[str, None] = dict.fromkeys(
            name for judge in judges for name, schema in _table(judge, "properties").items() if schema is not False
        )
        """The members that are declared, in order."""
        self.required: frozenset[str] = frozenset(
            name for judge in judges for name in judge.get("required", ()) if isinstance(name, str)
        )
        """The members that any of the subschemas requires."""
        self.types: frozenset[str] = frozenset(
            name for judge in judges for name in _types(judge) if isinstance(name, str)
        )
        """The types that are named; none where any will do."""
        self.fixed = any(not _FIXING.isdisjoint(judge) or judge.get("uniqueItems") is True for judge in judges)
        """Whether a value may be refused for what is optional and missing in it."""

    @property
    def anything(self) -> Members:
        """What is known where nothing is said."""
        return self._document.view(())

    def declares(self, name: str) -> bool:
        """Whether a member is declared, by its name or by a pattern that it fits."""
        if name in self.names:
            return True
        patterns = {pattern for judge in self._judges for pattern in _table(judge, "patternProperties")}
        fitting = compile_schema({"patternProperties": dict.fromkeys(sorted(patterns), False)}) if patterns else None
        return isinstance(fitting, Validator) and not fitting.is_valid({name: None})

    @cached_property
    def takes_any(self) -> bool:
        """Whether there may be members that are not declared, beside those that a contract leaves room for.

        Outputs are open so that fields can be added later: where some are declared, another is none yet.
        """
        if any(_table(judge, "patternProperties") or _has_schema(judge, _OTHERS) for judge in self._judges):
            return True
        if self.names:
            return False
        open_ones = [judge for judge in self._judges if judge.get("additionalProperties") is not False]
        if any("object" in _types(judge) for judge in open_ones):
            return True
        return len(open_ones) == len(self._judges) and all(_SAYING.isdisjoint(judge) for judge in self._judges)

    @cached_property
    def element(self) -> Members | None:
        """What the items of a list are; None for what is no list."""
        found = [judge[key] for judge in self._judges for key in _ITEMS if key in judge]
        found += [item for judge in self._judges for item in judge.get("prefixItems", ())]
        if found:
            return self._document.view(found)
        return self.anything if "array" in self.types or self is self.anything else None

    def below(self, name: str) -> Members:
        """What is said of a member, declared or not."""
        known = self._below.get(name)
        if known is None:
            found = []
            for judge in self._judges:
                declared = _table(judge, "properties")
                found += [declared[name]] if name in declared else [judge[key] for key in _OTHERS if key in judge]
                # Which pattern fits is for the validator; here each may.
                found += _table(judge, "patternProperties").values()
            known = self._document.view(found)
            if name in self.names:  # what callers make up is not remembered
                self._below[name] = known
        return known

    def step(self, name: str) -> Members | None:
        """What stands under a name, in the value or in each item of a list; None if nothing can."""
        found = [each.below(name) for each in self._through() if name in each.names or each.takes_any]
        return self._document.join(found) if found else None

    @property
    def reachable(self) -> list[str]:
        """The declared members, of the value or of each item of a list."""
        return list(dict.fromkeys(name for each in self._through() for name in each.names))

    def _through(self) -> Iterator[Members]:
        """The value itself, its items, the items of those."""
        seen: set[int] = set()
        each: Members | None = self
        while each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            each = each.element


class _Document:
    """One schema. The same subschemas give the same Members, so that circles end."""

    def __init__(self, schema: Any) -> None:
        plain = schema if isinstance(schema, dict) else {}
        self._steps = Steps(list(nodes(plain)))
        self._views: dict[frozenset[int], Members] = {}
        self.root = self.view((plain,))

    def view(self, schemas: Iterable[Any]) -> Members:
        """What schemas say together that all judge the same value, with all that they refer to."""
        judges: dict[int, dict[str, Any]] = {}
        waiting = [schema for schema in schemas if isinstance(schema, dict)]
        while waiting:
            judge = waiting.pop()
            if id(judge) not in judges:
                judges[id(judge)] = judge
                # What a value must not be says nothing of what it is.
                waiting += [step for step in reversed(self._steps.of(judge)) if step is not judge.get("not")]
        return self._known(judges)

    def join(self, several: list[Members]) -> Members:
        """What is said in several places."""
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
    """Whether one of the keywords describes members, and does not only allow or forbid them."""
    return any(isinstance(judge.get(key), dict) for key in keys)
