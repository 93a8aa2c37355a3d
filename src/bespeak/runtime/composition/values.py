"""Sources as functions: each is compiled once, when its endpoint is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from bespeak.contract.schema.numbers import non_finite
from bespeak.contract.schema.reference import inline
from bespeak.contract.source import Condition, Source, sources_in
from bespeak.runtime.composition.comparison import COMPARE
from bespeak.runtime.composition.rows import Rows
from bespeak.runtime.composition.scope import MISSING, Scope, UnmetError, is_there
from bespeak.runtime.route import property_types

Value = Callable[[Scope, Any], Any]
"""`(scope, item) -> value`, or MISSING."""

Schema = Mapping[str, Any]

_UNSHARED: Final = frozenset({"string", "integer", "boolean", "null"})
"""Types whose values cannot be changed and are always JSON."""


def compile_value(source: Source, schema: Schema | None = None) -> Value:
    """Compile a source. `schema` describes where its value goes: null is left out where it is not allowed."""
    if source.kind == "constant" and source.value == {} and source.select is not None:
        return compile_members(source.select, schema)  # an object of its own: `item` is what it is around it
    value = _base(source)
    if source.default is not None:
        value = _with_default(value, source.default)
    if _handles_rows(source):
        value = _rows(source, value)
    if source.get:
        value = _with_path(value, source.get)
    if source.select is not None:
        value = _with_shape(value, compile_members(source.select, _element(schema)))
    return value


def compile_members(sources: Mapping[str, Source], schema: Schema | None = None, *, copies: bool = False) -> Value:
    """Compile an object with a source for each member. Members without a value are left out.

    With `copies` the object may be changed without changing what its values come from.
    """
    properties = (schema or {}).get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    members = []
    for name, source in sources.items():
        inner = inline(declared.get(name), schema)
        types = property_types(inner)
        value = compile_value(source, inner)
        # A value of another type than the schema's is refused, so that only these can be shared.
        value = _copied(value) if copies and not (types and types <= _UNSHARED) else value
        members.append((name, value, not types or "null" in types))

    def build(scope: Scope, item: Any) -> dict[str, Any]:
        built = {}
        for name, value, takes_null in members:
            found = value(scope, item)
            if found is not MISSING and (takes_null or found is not None):
                built[name] = found
        return built

    return build


def compile_conditions(conditions: tuple[Condition, ...]) -> Callable[[Scope, Any], bool]:
    """Compile conditions that must all be met. Both sides of each are read in the same scope."""
    tests = [_test(condition) for condition in conditions]

    def holds(scope: Scope, item: Any) -> bool:
        return all(test(scope, item) for test in tests)

    return holds


def follow(value: Any, names: tuple[str, ...]) -> Any:
    """Follow a path. In a list it continues in each element, and lists inside become one list."""
    for index, name in enumerate(names):
        if type(value) is dict:
            value = value.get(name, MISSING)
        elif type(value) is list:
            found: list[Any] = []
            for each in value:
                inner = follow(each, names[index:])
                if type(inner) is list:
                    found += inner
                elif inner is not MISSING:
                    found.append(inner)
            return found
        else:
            return MISSING
    return value


def split_path(path: str) -> tuple[str, ...]:
    """Split a dotted path; the empty path has no names."""
    return tuple(path.split(".")) if path else ()


_ROOTS: Final[Mapping[str, Value]] = {
    "proposal": lambda scope, _: scope.input,
    "previous_step": lambda scope, _: scope.captured,
    "item": lambda _, item: item,
}


def _base(source: Source) -> Value:
    if source.kind == "constant":
        constant = source.value
        return lambda scope, item: constant
    root, names = _ROOTS[source.kind], split_path(source.value)
    if not names:
        return root
    if len(names) > 1 or source.kind == "item":
        return lambda scope, item: follow(root(scope, item), names)
    name = names[0]
    if source.kind == "proposal":
        return lambda scope, item: scope.input.get(name, MISSING)
    return lambda scope, item: scope.captured.get(name, MISSING)


def _with_default(value: Value, default: Any) -> Value:
    def read(scope: Scope, item: Any) -> Any:
        found = value(scope, item)
        return found if is_there(found) else default

    return read


def _with_path(value: Value, path: str) -> Value:
    names = split_path(path)
    return lambda scope, item: follow(value(scope, item), names)


def _with_shape(value: Value, shape: Value) -> Value:
    def read(scope: Scope, item: Any) -> Any:
        found = value(scope, item)
        if type(found) is list:
            scope.spend(len(found))
            return [shape(scope, each) for each in found]
        return shape(scope, found) if is_there(found) else found

    return read


def _handles_rows(source: Source) -> bool:
    return bool(source.where) or source.sort is not None or source.limit is not None or source.pick != "all"


def _rows(source: Source, value: Value) -> Value:
    conditions = [(compile_value(one.left), one.op, _optional(one.right)) for one in source.where]
    joined = (
        index
        for index, one in enumerate(source.where)
        if one.op == "eq" and source.kind != "item" and one.right is not None and _reads_item(one.right)
    )
    return Rows(
        value,
        conditions,
        sort=_optional(source.sort),
        limit=_optional(source.limit),
        pick=source.pick,
        joined=next(joined, None),
    ).read


def _optional(source: Source | None) -> Value | None:
    return None if source is None else compile_value(source)


def _reads_item(source: Source) -> bool:
    """Return True if a source depends on the element of a surrounding list."""
    return any(inner.kind == "item" for inner in sources_in(source))


def _test(condition: Condition) -> Callable[[Scope, Any], bool]:
    left, op = compile_value(condition.left), condition.op
    if condition.right is None:
        return lambda scope, item: is_there(left(scope, item)) == (op == "present")
    right, compare = compile_value(condition.right), COMPARE[op]

    def test(scope: Scope, item: Any) -> bool:
        wanted = right(scope, item)
        if not is_there(wanted):
            return True
        found = left(scope, item)
        return compare(wanted)(found) if is_there(found) else op == "ne"

    return test


def _copied(value: Value) -> Value:
    """Copy lists and objects, and refuse numbers that JSON does not have."""

    def read(scope: Scope, item: Any) -> Any:
        found = value(scope, item)
        kind = type(found)
        if kind is float or kind is dict or kind is list:
            if (kind is not float or not isfinite(found)) and non_finite(found):
                raise UnmetError("not-a-number", "a value is infinite or not a number, which JSON cannot express")
            return found if kind is float else msgspec.to_builtins(found)
        return found

    return read


def _element(schema: Schema | None) -> Schema | None:
    """Return the schema of what `select` shapes: the elements of a list, or the object itself."""
    if schema is not None and isinstance(items := schema.get("items"), Mapping):
        found: Schema = inline(items, schema)
        return found
    return schema
