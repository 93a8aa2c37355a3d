"""The one reading of a JSON Schema: what it says about a value through `$ref`, `allOf`, `anyOf` and `oneOf`.

`SchemaView` answers for one value: types, effective keywords, fields, items, listed values, and whether two schemas
exclude each other. `Members` answers what any subschema may declare at any depth. `sample` makes a value. Primitives
(`resolve`, `inline`, `nodes`, `rewrite`, `transplant`) are in `subschemas`. These readings stay their own:

- `contract.schema.safety`, `validation.excess`: count the work of a validator, so nothing may be merged or cut.
- `contract.http_route.expressible`: rewrites a property for a path or query.
- `checks.evolution.schema_view.SchemaReferences`: keeps contradicting keywords as `allOf`, for the comparison.
- `checks.lint.rules`: judge what the author wrote, at its place, without what a reference adds.
- `documents.openapi`: converts schemas of other dialects, with positions; its references leave the document.
- `documents.projections.model_tools`: rewrites schemas for providers; every step works on the plain form.
- `documents.agis.shape`, `documents.adoption`: move, cut or rename definitions.
- `app.lsp.completion`: follows one path in our own schemas, and compares the definitions by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import combinations
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.schema.subschemas import Steps, nodes, resolve
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.text.reading.table import as_list, as_texts

_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip
_DEEPEST: Final = 8  # limit of nested combinations and chained references
_MOST_STEPS: Final = 50_000  # limit of subschemas that the views of one document visit: about a tenth of a second
_DEEPEST_FIELDS: Final = 4  # limit of levels of fields that are compared
_MOST_OPTIONS: Final = 64  # limit of schemas that are compared with each other
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_COMPOUND: Final = frozenset({"allOf", *_ALTERNATIVES})
_INDIRECT: Final = frozenset({"$ref", "allOf"})  # keywords that may add to the type
EVERY_TYPE: Final = frozenset({"null", "boolean", "object", "array", "integer", "fraction", "string"})
"""All types of value. Every number is an integer or has a fraction, so `integer` is part of `number`."""


class Field(NamedTuple):
    """A field of an object."""

    name: str
    schema: Any
    required: bool


class _Reading:
    """The document that resolves references, and the work left for its views."""

    def __init__(self, root: object, most: int) -> None:
        self.root = root
        self.left = most
        self.is_cut = False


class SchemaView:
    """What a schema says about a value. A reference that leads nowhere says nothing."""

    def __init__(self, schema: object, root: object, *, most: int = _MOST_STEPS, depth: int = 0) -> None:
        """Read a schema. `root` is the document that resolves its references, or a view that shares its work."""
        self._reading: _Reading = root._reading if isinstance(root, SchemaView) else _Reading(root, most)
        self._depth = depth
        self.names: list[str] = []  # names of the definitions that the schema refers to
        self._reading.left -= 1
        if type(schema) is dict and type(schema.get("type")) is str and _INDIRECT.isdisjoint(schema):
            self._own: Mapping[str, Any] = schema
        else:
            self._own = self._combined(schema)

    @property
    def is_cut(self) -> bool:
        """True if a view of the document has left out something that is nested too deeply or takes too long."""
        return self._reading.is_cut

    @cached_property
    def keywords(self) -> Mapping[str, Any]:
        """Effective keywords, references resolved; with those of the only alternative other than null."""
        real = [] if _named(self._own) else [option for option in self._options if not _is_null(option)]
        if len(real) != 1:
            return self._own
        own = {key: value for key, value in self._own.items() if key not in _ALTERNATIVES}
        only = self._beside(real[0])
        self.names += only.names
        return {**only.keywords, **own}

    @cached_property
    def types(self) -> frozenset[str]:
        """JSON types that a value may have, by `type` and listed values; empty if the schema does not restrict them."""
        found = [_declared(each._own) for each in self.alternatives]
        return frozenset(kind for named in found for kind in named) if all(found) else frozenset()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """JSON types other than null that a schema names or implies, in their order; empty if one is not known."""
        found = [_named(each._own) for each in self.alternatives]
        kinds = dict.fromkeys(kind for named in found for kind in named if kind != "null")
        return tuple(kinds) if all(found) else ()

    @property
    def kind(self) -> str:
        """The first type other than null; empty if the schema does not name one."""
        return self.kinds[0] if self.kinds else ""

    @property
    def nullable(self) -> bool:
        """True if the schema names null as a type or value."""
        return any("null" in _named(each._own) for each in self.alternatives)

    @cached_property
    def values(self) -> list[Any] | None:
        """The only values that are allowed; None if they are not listed."""
        found = [[None] if _is_null(each._own) else listed_values(each._own) for each in self.alternatives]
        return [value for values in found for value in values or ()] if None not in found else None

    @property
    def items(self) -> SchemaView:
        """The elements of a list."""
        return SchemaView(self.keywords.get("items"), self)

    @property
    def fields(self) -> list[Field]:
        """The fields of an object: its own, and those of its combined schemas."""
        return list(self._fields(self.keywords, 0).values())

    @cached_property
    def alternatives(self) -> list[SchemaView]:
        """The schemas of which a value meets one, themselves without alternatives unless they name a type."""
        seen: set[int] = set()
        found: list[SchemaView] = []
        waiting = [self]
        while waiting:
            view = waiting.pop()
            options = [] if _named(view._own) else view._options
            if not options:
                found.append(view)
            new = [option for option in reversed(options) if id(option) not in seen]
            seen.update(map(id, new))
            waiting += [self._beside(option) for option in new]
        return found

    def excludes(self, other: SchemaView, *, closed: bool = False, depth: int = 0) -> bool:
        """Return True if no value meets both schemas, as far as types, listed values and required fields show.

        With `closed`, an object that does not say whether it takes undeclared fields takes none.
        """
        pairs = ((one, another) for one in self.alternatives for another in other.alternatives)
        return all(one._excludes(another, closed, depth) for one, another in pairs)

    def _excludes(self, other: SchemaView, closed: bool, depth: int) -> bool:
        self._reading.left -= 1
        if self._reading.left < 0 or depth > _DEEPEST_FIELDS:
            return False
        one, another = self.keywords, other.keywords
        first, second = type_set(one), type_set(another)
        if (first and second and first.isdisjoint(second)) or _values_differ(one, another):
            return True
        if first & second != {"object"}:
            return False
        if closed and (_lacks(one, another) or _lacks(another, one)):
            return True
        mine, theirs = _table(one, "properties"), _table(another, "properties")
        return any(
            SchemaView(mine[name], self).excludes(SchemaView(theirs[name], other), closed=closed, depth=depth + 1)
            for name in sorted(_required(one) & _required(another) & mine.keys() & theirs.keys())
        )

    def _combined(self, schema: object) -> Mapping[str, Any]:
        """Resolve the references of a schema, and add the keywords of `allOf` that it does not have itself."""
        found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        for _ in range(_DEEPEST):
            if not isinstance(reference := found.get("$ref"), str):
                break
            self.names.append(reference.rsplit("/", 1)[-1])
            found = resolve(found, self._reading.root, most=1)
        parts = as_list(found.get("allOf"))
        if self._reading.left < 0 or "$ref" in found or (parts and self._depth > _DEEPEST):
            self._reading.is_cut = True
            return {} if self._reading.left < 0 else found
        for part in parts:
            view = self._beside(part)
            found = {**view.keywords, **found}
            self.names += view.names
        return found

    def _beside(self, schema: object) -> SchemaView:
        return SchemaView(schema, self, depth=self._depth + 1)

    @property
    def _options(self) -> list[Any]:
        if self._depth > _DEEPEST:
            return []
        return [part for keyword in _ALTERNATIVES for part in as_list(self._own.get(keyword))]

    def _fields(self, schema: Mapping[str, Any], depth: int) -> dict[str, Field]:
        self._reading.left -= 1
        needed = _required(schema)
        nested = not _COMPOUND.isdisjoint(schema) and depth <= _DEEPEST and self._reading.left > 0
        found = self._inherited(schema, depth) if nested else {}
        for name in needed & found.keys():
            found[name] = found[name]._replace(required=True)
        for name, value in _table(schema, "properties").items():
            known = found.get(name)
            found[name] = Field(name, value, name in needed or (known is not None and known.required))
        return found

    def _inherited(self, schema: Mapping[str, Any], depth: int) -> dict[str, Field]:
        """Return the fields of combined schemas; a field of alternatives is required if all of them require it."""
        found: dict[str, Field] = {}

        def parts(keyword: str) -> list[dict[str, Field]]:
            resolved = (resolve(part, self._reading.root, most=_DEEPEST) for part in as_list(schema.get(keyword)))
            return [self._fields(part, depth + 1) for part in resolved]

        for keyword in _ALTERNATIVES:
            branches = parts(keyword)
            for branch in branches:
                for name, field in branch.items():
                    everywhere = all(name in other and other[name].required for other in branches)
                    found.setdefault(name, field._replace(required=everywhere))
        for part in parts("allOf"):
            found |= part
        return found


def overlaps(schemas: list[Any], root: object, *, closed: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of schemas that one value may meet; of too many schemas, all pairs. See `SchemaView.excludes`."""
    around = SchemaView({}, root)
    views = [SchemaView(schema, around) for schema in schemas]
    for one, other in combinations(range(len(views)), 2):
        if len(views) > _MOST_OPTIONS or not views[one].excludes(views[other], closed=closed):
            yield schemas[one], schemas[other]


def json_type(value: object) -> str:
    """Return the JSON type of a value as a JSON decoder returns it."""
    return _NAMES.get(type(value), "null")


def listed_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the values of `const` or `enum`; None if a schema lists none."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else None


def type_set(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the types a schema allows by its `type`, or else by its listed values; `number` is integer or fraction."""
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named
    if isinstance(names, list):
        # Other people's schemas: what stands in the list need not be a text.
        found = frozenset(name for name in names if isinstance(name, str))
        return (found | {"integer", "fraction"} if "number" in found else found) & EVERY_TYPE
    values = listed_values(schema)
    return EVERY_TYPE if values is None else frozenset(map(_exact_type, values))


def _exact_type(value: Any) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    return json_type(value)


def _values_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if both schemas list their values, and share none: 1 is 1.0 but not true."""
    first, second = listed_values(one), listed_values(other)
    if first is None or second is None:
        return False
    known = {(type(value) is bool, value) for value in second if not isinstance(value, list | dict)}
    return not any(
        value in second if isinstance(value, list | dict) else (type(value) is bool, value) in known for value in first
    )


def _lacks(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if an object requires a field that the other one does not have."""
    if other.get("additionalProperties", False) is not False or "patternProperties" in other:
        return False
    return not _required(one) <= _table(other, "properties").keys()


def _declared(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    named = [kind] if isinstance(kind, str) else [*as_texts(schema.get("type"))]
    return named or [json_type(value) for value in listed_values(schema) or ()]


def _named(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema names, or that its keywords imply."""
    return _declared(schema) or (["object"] if "properties" in schema else ["array"] if "items" in schema else [])


def _required(schema: Mapping[str, Any]) -> set[str]:
    return {*as_texts(schema.get("required"))}


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
            if name in members.required or not (left is None or (not left and type(left) in (str, dict, list))):
                kept[name] = left
        return kept
    element = members.element or members.anything
    return [without_empty(item, element) if type(item) in _CONTAINERS else item for item in value]


_CONTAINERS: Final = (dict, list)


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
    return found if isinstance(found, Mapping) else {}


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
_MAX_LENGTH: Final = 10_000


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a minimal value that the schema accepts, or None if that is too hard to guess."""
    compiled = compile_schema(schema)
    if not isinstance(compiled, Validator):
        return None
    value = _guess(schema, 0)
    return value if compiled.is_valid(value) else None


def _guess(schema: object, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > 8:
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
