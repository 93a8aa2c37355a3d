"""Sources of a composition as functions, compiled once: paths, comparisons, and operations on lists."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum, isfinite
from typing import Any, Final

import msgspec

from bespeak.contract.recipe import Condition, Source, sources_in
from bespeak.contract.schema.subschemas import inline
from bespeak.contract.schema.validation import non_finite
from bespeak.contract.schema.view import SchemaView

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)  # as JSON writes it, so that "007" is not 7
_encode = msgspec.json.Encoder(order="sorted").encode

Normal = tuple[int, Any]
"""Kind and value: equal values have equal normals, and normals of one kind have an order. They are hashable."""


def normal(value: Any) -> Normal:
    kind = type(value)
    if kind is str:
        if _DATE.fullmatch(value) is not None:
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return 2, value
            return 1, moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return 2, value
    if kind is int or kind is float:
        return 0, value
    if kind is bool:
        return 3, value
    return 4, _encode(value)


Test = Callable[[Any], bool]  # compares a value with the wanted one


def _compared(holds: Callable[[Any, Any], bool], *, ordered: bool = True) -> Callable[[Any], Test]:
    def compare(wanted: Any) -> Test:
        right = normal(wanted)

        def test(value: Any) -> bool:
            left = normal(value)
            return (left[0] == right[0] or not ordered) and holds(left, right)

        return test

    return compare


def _containing(wanted: Any) -> Test:
    right = normal(wanted)
    text = wanted.casefold() if type(wanted) is str else None

    def test(value: Any) -> bool:
        if type(value) is list:
            return any(normal(each) == right for each in value)
        return text is not None and type(value) is str and text in value.casefold()

    return test


def _within(wanted: Any) -> Test:
    members = {normal(each) for each in wanted} if type(wanted) is list else set()
    return lambda value: normal(value) in members


COMPARE: Final[Mapping[str, Callable[[Any], Test]]] = {
    "eq": _compared(operator.eq, ordered=False),
    "ne": _compared(operator.ne, ordered=False),
    "lt": _compared(operator.lt),
    "lte": _compared(operator.le),
    "gt": _compared(operator.gt),
    "gte": _compared(operator.ge),
    "contains": _containing,
    "in": _within,
}
"""Comparisons by operator, with the wanted value on the right. Values of two kinds are neither equal nor in order."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()  # no value, which is not the same as null


def is_there(value: Any) -> bool:
    return value is not MISSING and value is not None


MOST_ROWS: Final = 1_000_000  # that the sources of one composition look at, so that no join blocks the server for long


class UnmetError(Exception):
    """A source that has no usable value. It never leaves the composition."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class Scope:
    """The values of one run. Closures of `values` read them."""

    __slots__ = ("_rows", "captured", "indexes", "input")

    def __init__(self, given: dict[str, Any]) -> None:
        self.input = given
        self.captured: dict[str, Any] = {}
        self.indexes: dict[int, Any] = {}  # rows by the value of a field, by the id() of the source
        self._rows = MOST_ROWS

    def capture(self, name: str, output: Any) -> None:
        self.captured[name] = output
        self.indexes.clear()

    def spend(self, rows: int) -> None:
        """Count rows that are looked at. Raises UnmetError if they are too many."""
        self._rows -= rows
        if self._rows < 0:
            message = f"its lists need more than {MOST_ROWS:,} comparisons; ask for fewer elements"
            raise UnmetError("too-many-rows", message)


Value = Callable[[Scope, Any], Any]  # `(scope, item) -> value`, or MISSING
_Condition = tuple[Value, str, Value | None]  # left side, of the row; operator; right side, from around the list


@dataclass(frozen=True, slots=True, eq=False)
class SelectedRows:
    value: Value
    conditions: Sequence[_Condition]
    sort: Value | None
    limit: Value | None
    pick: str
    joined: int | None
    """Number of an equation that is read once for each item of a surrounding list. The rows are then found by an index:
    a join of two long lists must not compare each with each.
    """

    def read(self, scope: Scope, item: Any) -> Any:
        """Return the list, the picked row, or MISSING. Raises UnmetError if a row must be picked and cannot be."""
        rows = self._kept(scope, item)
        if rows is None:
            return MISSING if self.pick == "all" else _picked([], self.pick)
        if self.sort is not None:
            rows = _sorted(rows, self.sort(scope, item))
        if self.limit is not None:
            limit = self.limit(scope, item)
            if is_there(limit) and (type(limit) is not int or limit < 0):
                raise UnmetError("invalid-limit", "the limit of a list must be a whole number that is not negative")
            rows = rows[:limit] if is_there(limit) else rows
        return rows if self.pick == "all" else _picked(rows, self.pick)

    def _kept(self, scope: Scope, item: Any) -> list[Any] | None:
        """Return the rows that meet all conditions; None if there is no list."""
        tests: list[Callable[[Any], bool]] = []
        rows: list[Any] | None = None
        for index, (left, op, right) in enumerate(self.conditions):
            wanted = MISSING if right is None else right(scope, item)
            if right is not None and not is_there(wanted):
                continue
            if index == self.joined:
                rows = self._index(scope, item, left).get(normal(wanted), [])
            else:
                tests.append(_test(scope, left, op, wanted))
        if rows is None:
            rows = _as_list(self.value(scope, item))
        if rows is None or not tests:
            return rows
        scope.spend(len(rows))
        return [row for row in rows if all(test(row) for test in tests)]

    def _index(self, scope: Scope, item: Any, left: Value) -> dict[Normal, list[Any]]:
        """Return the rows by the value of the left side, which is computed once for all items."""
        found: dict[Normal, list[Any]] | None = scope.indexes.get(id(self))
        if found is None:
            found = scope.indexes[id(self)] = {}
            rows = _as_list(self.value(scope, item)) or []
            scope.spend(len(rows))
            for row in rows:
                key = left(scope, row)
                if is_there(key):
                    found.setdefault(normal(key), []).append(row)
        return found


def _as_list(value: Any) -> list[Any] | None:
    """Return a list; a single value is a list of one. None if there is no value."""
    if type(value) is list:
        return value
    return [value] if is_there(value) else None


def _test(scope: Scope, left: Value, op: str, wanted: Any) -> Callable[[Any], bool]:
    if op in ("present", "absent"):
        return lambda row: is_there(left(scope, row)) == (op == "present")
    holds = COMPARE[op](wanted)

    def test(row: Any) -> bool:
        found = left(scope, row)
        return holds(found) if is_there(found) else op == "ne"

    return test


def _sorted(rows: list[Any], order: Any) -> list[Any]:
    """Sort rows by fields, `-field` for descending. Rows without the field come last; equal ones keep their order."""
    fields = order if type(order) is list else [order]
    if any(type(field) is not str or not field for field in fields):
        raise UnmetError("invalid-order", "the order of a list must be the name of a field, or a list of names")
    for field in reversed(fields):
        names = tuple(field.removeprefix("-").split("."))
        keyed = [(_first(row, names), row) for row in rows]
        there = [(normal(key), row) for key, row in keyed if key is not None]
        there.sort(key=operator.itemgetter(0), reverse=field.startswith("-"))
        rows = [row for _, row in there] + [row for key, row in keyed if key is None]
    return rows


def _first(row: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        row = row.get(name) if type(row) is dict else None
    return row


def _picked(rows: list[Any], pick: str) -> Any:
    if not rows:
        raise UnmetError("no-element", "no element of the list fits")
    if pick == "only" and len(rows) > 1:
        raise UnmetError("several-elements", f"{len(rows)} elements of the list fit, and only one may")
    return rows[0]


Schema = Mapping[str, Any]

_UNSHARED: Final = frozenset({"string", "integer", "boolean", "null"})  # immutable, and always JSON


def compile_value(source: Source, schema: Schema | None = None) -> Value:
    """Compile a source. `schema` describes where its value goes: null is left out where it is not allowed."""
    if source.kind == "constant" and source.value == {} and source.select is not None:
        return compile_members(source.select, schema)  # an object of its own: `item` is what it is around it
    value = _base(source)
    if source.default is not None:
        value = _with_default(value, source.default)
    if source.where or source.sort is not None or source.limit is not None or source.pick != "all":
        value = _rows(source, value)
    if source.get:
        value = _with_path(value, source.get)
    if source.form:
        value = _converted(value, source.form)
    if source.reduce:
        return _reduced(value, source.reduce)
    if source.select is not None:
        # The schema of what it shapes: the elements of a list, or the object itself.
        items = None if schema is None else schema.get("items")
        element = inline(items, schema) if isinstance(items, Mapping) else schema
        value = _with_shape(value, compile_members(source.select, element))
    return value


def compile_members(sources: Mapping[str, Source], schema: Schema | None = None, *, copies: bool = False) -> Value:
    """Compile an object of sources, without members that have no value. With `copies` it may be changed freely."""
    properties = (schema or {}).get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    members = []
    for name, source in sources.items():
        inner = inline(declared.get(name), schema)
        types = SchemaView(inner, schema).types
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
    tests = [_test_values(condition) for condition in conditions]
    return lambda scope, item: all(test(scope, item) for test in tests)


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


def _converted(value: Value, form: str) -> Value:
    def convert(found: Any) -> Any:
        if type(found) is int:
            return str(found) if form == "text" else found
        if type(found) is str and form == "text":
            return found
        if type(found) is str and _INTEGER.fullmatch(found) is not None:
            return int(found)
        kind = "a text or an integer" if form == "text" else "a whole number, or a text that is one"
        raise UnmetError("not-convertible", f"a key must be {kind}")

    def read(scope: Scope, item: Any) -> Any:
        found = value(scope, item)
        if type(found) is list:
            scope.spend(len(found))
            return [convert(one) for one in found]
        return convert(found) if is_there(found) else found

    return read


def _reduced(value: Value, way: str) -> Value:
    def read(scope: Scope, item: Any) -> Any:
        rows = _as_list(value(scope, item))
        if rows is None:
            return MISSING
        scope.spend(len(rows))
        found = [row for row in rows if is_there(row)]
        kinds = {normal(one)[0] for one in found} if way != "count" else set()
        if len(kinds) > 1 or (way in ("sum", "average") and kinds - {0}):
            raise UnmetError("not-a-number", f"the {way} of a list must be of numbers; it has other values")
        try:
            return _REDUCE[way](found) if found or way in ("count", "sum") else MISSING
        except OverflowError:
            raise UnmetError("not-a-number", f"the {way} of a list is too large") from None

    return read


def _sum(found: list[Any]) -> Any:
    return fsum(found) if any(type(one) is float for one in found) else sum(found)


_REDUCE: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "count": len,
    "sum": _sum,
    "min": lambda found: min(found, key=normal),
    "max": lambda found: max(found, key=normal),
    "average": lambda found: _sum(found) / len(found),
}


def _with_shape(value: Value, shape: Value) -> Value:
    def read(scope: Scope, item: Any) -> Any:
        found = value(scope, item)
        if type(found) is list:
            scope.spend(len(found))
            return [shape(scope, each) for each in found]
        return shape(scope, found) if is_there(found) else found

    return read


def _rows(source: Source, value: Value) -> Value:
    conditions = [(compile_value(one.left), one.op, _optional(one.right)) for one in source.where]
    # Equations whose right side depends on the element of a surrounding list.
    joined = (
        index
        for index, one in enumerate(source.where)
        if one.op == "eq" and source.kind != "item" and one.right is not None
        if any(inner.kind == "item" for inner in sources_in(one.right))
    )
    return SelectedRows(
        value,
        conditions,
        sort=_optional(source.sort),
        limit=_optional(source.limit),
        pick=source.pick,
        joined=next(joined, None),
    ).read


def _optional(source: Source | None) -> Value | None:
    return None if source is None else compile_value(source)


def _test_values(condition: Condition) -> Callable[[Scope, Any], bool]:
    left, op, right = compile_value(condition.left), condition.op, _optional(condition.right)

    def test(scope: Scope, item: Any) -> bool:
        wanted = MISSING if right is None else right(scope, item)
        return (right is not None and not is_there(wanted)) or _test(scope, left, op, wanted)(item)

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
