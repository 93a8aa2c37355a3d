"""Shape of the values that a schema describes: members and items, one-line summaries, and sample values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.schema.subschemas import Steps, nodes, resolve
from bespeak.contract.schema.validation import Validator, compile_schema

_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
_DEEPEST: Final = 5  # limit of nested alternatives and chained references
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_COMPOUND: Final = frozenset({"allOf", *_ALTERNATIVES})
_INDIRECT: Final = frozenset({"$ref", "allOf"})  # keywords that may add to the type


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a schema."""

    kind: str  # one of the six JSON types other than null; empty if the schema does not name one
    schema: Mapping[str, Any]  # effective keywords, references resolved; of alternatives those of a single one
    nullable: bool = False
    others: tuple[str, ...] = ()  # further types, if there are several


_NULL_SHAPE: Final = Shape("", {"type": "null"}, nullable=True)


class Field(NamedTuple):
    """A field of an object."""

    name: str
    schema: Any
    required: bool


def shape_of(schema: object, root: Mapping[str, Any], depth: int = 0) -> Shape:
    """Return the shape of a schema; `root` is the document that resolves its references."""
    if type(schema) is dict and type(schema.get("type")) is str and _INDIRECT.isdisjoint(schema):
        return _NULL_SHAPE if schema["type"] == "null" else Shape(schema["type"], schema)
    found = resolve(schema, root, most=_DEEPEST)
    if depth > _DEEPEST:
        return Shape("", found)
    for part in _parts(found, "allOf"):
        found = {**shape_of(part, root, depth + 1).schema, **found}
    kinds, nullable = _declared_kinds(found)
    if not kinds:
        found, kinds, null = _of_alternatives(found, root, depth)
        nullable = nullable or null
    return Shape(kinds[0] if kinds else "", found, nullable, tuple(kinds[1:]))


def fields_of(shape: Shape, root: Mapping[str, Any]) -> list[Field]:
    """Return the fields of an object: its own, and those of its combined schemas."""
    return list(_fields(shape.schema, root, 0).values())


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Field]:
    required, properties = schema.get("required"), schema.get("properties")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    found = {} if _COMPOUND.isdisjoint(schema) or depth > _DEEPEST else _inherited(schema, root, depth)
    for name in needed & found.keys():
        found[name] = found[name]._replace(required=True)
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        known = found.get(name)
        found[name] = Field(name, value, name in needed or (known is not None and known.required))
    return found


def _inherited(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Field]:
    """Return the fields of an object's combined schemas; a field of alternatives is required if all of them have it."""
    found: dict[str, Field] = {}
    for keyword in _ALTERNATIVES:
        branches = [_fields(resolve(part, root, most=_DEEPEST), root, depth + 1) for part in _parts(schema, keyword)]
        for branch in branches:
            for name, field in branch.items():
                everywhere = all(name in other and other[name].required for other in branches)
                found.setdefault(name, field._replace(required=everywhere))
    for part in _parts(schema, "allOf"):
        found |= _fields(resolve(part, root, most=_DEEPEST), root, depth + 1)
    return found


def _of_alternatives(
    schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> tuple[Mapping[str, Any], list[str], bool]:
    """Return the schema merged with its only alternative other than null, else the types of the alternatives."""
    options = [part for keyword in _ALTERNATIVES for part in _parts(schema, keyword)]
    shapes = [shape_of(option, root, depth + 1) for option in options if not _is_null(option)]
    nullable = len(shapes) < len(options) or any(shape.nullable for shape in shapes)
    if len(shapes) == 1:
        own = {key: value for key, value in schema.items() if key not in _ALTERNATIVES}
        only = shapes[0]
        return {**only.schema, **own}, [only.kind, *only.others] if only.kind else [], nullable
    if all(shape.kind for shape in shapes):
        kinds = dict.fromkeys(kind for shape in shapes for kind in (shape.kind, *shape.others))
        return schema, list(kinds), nullable
    return schema, [], nullable


def _declared_kinds(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the types that a schema names, or that its values and keywords imply."""
    kind = schema.get("type")
    named = [kind] if isinstance(kind, str) else [each for each in kind if isinstance(each, str)] if kind else []
    if not named:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        named = [_NAMES.get(type(value), "null") for value in values] if isinstance(values, list) else []
    if not named:
        named = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    kinds = list(dict.fromkeys(named))
    return [each for each in kinds if each != "null"], "null" in kinds


def _parts(schema: Mapping[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _is_null(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


_ITEMS: Final = ("items", "contains", "unevaluatedItems")
_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
_FIXING: Final = frozenset(
    {"const", "contains", "dependentRequired", "dependentSchemas", "enum", "if", "minProperties", "not"}
)  # keywords that may refuse an object because an optional part is missing, at any depth
_ALTERNATIVE_MEMBERS: Final = frozenset({"anyOf", "oneOf", "if", "dependentSchemas"})
_RESTRICTING: Final = frozenset({"type", "const", "enum", "items", "prefixItems"})
"""Keywords that restrict a schema without properties to something other than any object."""


def members_of(schema: Mapping[str, Any]) -> Members:
    # A copy of plain dictionaries: objects cached by identity must neither change nor be freed.
    return _SchemaDocument(msgspec.json.decode(msgspec.json.encode(schema))).root


def without_empty(value: Any, members: Members) -> Any:
    """Remove optional members that are null or empty, at every depth, except where members are counted or compared.

    The schema may still demand a removed member: validate the result if it must conform.
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

    def __init__(self, document: _SchemaDocument, judges: tuple[dict[str, Any], ...]) -> None:
        self._document = document
        self._judges = judges
        self._below: dict[str, Members] = {}
        self.names: Mapping[str, None] = dict.fromkeys(
            name for judge in judges for name, schema in _table(judge, "properties").items() if schema is not False
        )  # declared members, in order
        self.required: frozenset[str] = frozenset(
            name for judge in judges for name in judge.get("required", ()) if isinstance(name, str)
        )  # members that any of the subschemas requires
        self.types: frozenset[str] = frozenset(
            name for judge in judges for name in _types(judge) if isinstance(name, str)
        )  # named types; empty if any type is allowed
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
        return any(not _ALTERNATIVE_MEMBERS.isdisjoint(judge) for judge in self._judges)

    @property
    def anything(self) -> Members:
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
        """True if undeclared members are expected, beyond the openness that lets every output grow."""
        for judge in self._judges:
            if _table(judge, "patternProperties") or any(isinstance(judge.get(key), dict) for key in _OTHERS):
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
        return list(dict.fromkeys(name for each in self._through() for name in each.names))

    def _through(self) -> Iterator[Members]:
        """Yield the value itself, its items, their items, and so on."""
        seen: set[int] = set()
        each: Members | None = self
        while each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            each = each.element


class _SchemaDocument:
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


_FORMATS: Final[Mapping[str, str]] = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "probe@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
}
_MAX_DEPTH: Final = 8
_MAX_LENGTH: Final = 10_000


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a minimal value that the schema accepts, or None if that is too hard to guess."""
    compiled = compile_schema(schema)
    if not isinstance(compiled, Validator):
        return None
    value = _guess(schema, 0)
    return value if compiled.is_valid(value) else None


def _guess(schema: object, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    if "const" in schema:
        return schema["const"]
    for known in ("enum", "examples"):
        values = schema.get(known)
        if isinstance(values, list) and values:
            return values[0]
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind == "object":
        return _object(schema, depth)
    if kind == "array":
        return [_guess(schema.get("items"), depth + 1) for _ in range(min(_number(schema, "minItems"), 100))]
    if kind in ("integer", "number"):
        return _within(schema)
    return {"string": _text(schema), "boolean": False}.get(kind if isinstance(kind, str) else "null")


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    declared, required = schema.get("properties"), schema.get("required")
    if not isinstance(declared, Mapping) or not isinstance(required, list):
        return {}
    return {name: _guess(declared.get(name), depth + 1) for name in required if isinstance(name, str)}


def _text(schema: Mapping[str, Any]) -> str:
    named = _FORMATS.get(str(schema.get("format")))
    return named if named is not None else "x" * min(max(_number(schema, "minLength"), 1), _MAX_LENGTH)


def _within(schema: Mapping[str, Any]) -> int | float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if isinstance(low, int | float):
        return low
    if isinstance(above, int | float):
        return above + 1
    high = schema.get("maximum")
    return high if isinstance(high, int | float) and high < 1 else 1


def _number(schema: Mapping[str, Any], name: str) -> int:
    value = schema.get(name, 0)
    return value if isinstance(value, int) and value > 0 else 0
