"""Summary of a schema: its type, and the fields of an object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.schema.view import SchemaView, members_of, overlaps, sample, without_empty


@rows(
    "schema, kind, nullable, others",
    ({"type": "string"}, "string", False, ()),
    ({"type": ["integer", "null"]}, "integer", True, ()),
    ({"type": ["integer", "string"]}, "integer", False, ("string",)),
    ({"enum": ["a", "b", None]}, "string", True, ()),
    ({"const": 3}, "integer", False, ()),
    ({"properties": {}}, "object", False, ()),
    ({"items": {}}, "array", False, ()),
    ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number", True, ()),
    ({"oneOf": [{"type": "number"}, {"type": "boolean"}]}, "number", False, ("boolean",)),
    ({"oneOf": [{"type": "number"}, {}]}, "", False, ()),
    ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, "string", False, ()),
    ({"$ref": "#/$defs/a"}, "boolean", False, ()),
    ({"$ref": "#/$defs/loop"}, "", False, ()),
    ({"$ref": "#/nowhere"}, "", False, ()),
    ({"$ref": "https://elsewhere.example/schema"}, "", False, ()),
    ({}, "", False, ()),
    (True, "", False, ()),
)
def test_the_type_of_a_schema_is_found(schema: Any, kind: str, nullable: bool, others: tuple[str, ...]) -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/b~1c"}, "b/c": {"type": "boolean"}, "loop": {"$ref": "#/$defs/loop"}}}
    view = SchemaView(schema, root)
    assert (view.kind, view.nullable, view.kinds[1:]) == (kind, nullable, others)


def test_keywords_beside_a_reference_override_its_target_and_the_only_alternative_beside_null_is_used() -> None:
    root = {"$defs": {"day": {"type": "string", "description": "A day."}}}
    view = SchemaView({"$ref": "#/$defs/day", "description": "The day of arrival."}, root)
    assert view.keywords == {"type": "string", "description": "The day of arrival."}
    view = SchemaView({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}, {})
    assert view.keywords == {"type": "integer", "minimum": 1, "default": None}


def test_fields_come_from_all_parts_and_are_required_where_every_alternative_requires_them() -> None:
    text = {"type": "string"}
    schema = {
        "allOf": [{"$ref": "#/$defs/base"}],
        "oneOf": [
            {"properties": {"card": text, "name": text}, "required": ["card", "name"]},
            {"properties": {"iban": text, "name": text}, "required": ["iban", "name"]},
        ],
        "properties": {"note": text},
        "required": ["note", "id"],
    }
    root = {"$defs": {"base": {"properties": {"id": text, "kept": text}, "required": ["kept"]}}}
    found = {field.name: field.required for field in SchemaView(schema, root).fields}
    assert found == {"card": False, "name": True, "iban": False, "id": True, "kept": True, "note": True}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_recursive_schema_ends(keyword: str) -> None:
    root: dict[str, Any] = {"$defs": {"tree": {keyword: [{"$ref": "#/$defs/tree"}, {"properties": {"leaf": {}}}]}}}
    view = SchemaView({"$ref": "#/$defs/tree"}, root)
    assert [field.name for field in view.fields] == ["leaf"]


TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


@rows(
    "schema, types, values",
    ({"type": ["integer", "null"]}, {"integer", "null"}, None),
    ({"enum": ["a", None]}, {"string", "null"}, ["a", None]),
    ({"anyOf": [{"const": 1.5}, {"$ref": "#/$defs/answers"}, NULL]}, {"number", "boolean", "null"}, [1.5, True, None]),
    ({"anyOf": [TEXT, {}]}, set(), None),
    ({"anyOf": [NULL]}, {"null"}, [None]),
    ({"properties": {}}, set(), None),
    ({"allOf": [{"$ref": "#/$defs/answers"}, {"description": "An answer."}]}, {"boolean"}, [True]),
    ({"$ref": "#/$defs/union"}, {"string", "null"}, None),
    ({"type": 5}, set(), None),
)
def test_types_and_values_of_all_alternatives_are_known_or_open(schema: Any, types: set[str], values: Any) -> None:
    union = {"anyOf": [{"$ref": "#/$defs/union"}, TEXT, {"oneOf": [NULL, {"$ref": "#/$defs/union"}]}]}
    view = SchemaView(schema, {"$defs": {"answers": {"const": True}, "union": union}})
    assert (view.types, view.values) == (types, values)


def test_view_names_the_definitions_and_tells_when_it_left_something_out() -> None:
    root = {"$defs": {"Room": {"allOf": [{"$ref": "#/$defs/Thing"}]}, "Thing": {"type": "object"}}}
    view = SchemaView({"anyOf": [{"$ref": "#/$defs/Room"}, NULL]}, root)
    assert (view.keywords["type"], view.names, view.is_cut) == ("object", ["Room", "Thing"], False)
    loop = SchemaView({"$ref": "#/$defs/loop"}, {"$defs": {"loop": {"allOf": [{"$ref": "#/$defs/loop"}] * 9}}})
    assert (loop.kind, loop.is_cut) == ("", True)
    spent = SchemaView({"properties": {name: {"$ref": "#/$defs/Room"} for name in "abc"}}, root, most=4)
    assert [SchemaView(field.schema, spent).kind for field in spent.fields] == ["object", "", ""]
    assert spent.is_cut


def thing(*names: str, kind: str | None = None, **marks: Any) -> dict[str, Any]:
    properties: dict[str, Any] = dict.fromkeys(names, TEXT) | ({} if kind is None else {"kind": {"const": kind}})
    return {"type": "object", "properties": properties, "required": list(properties), **marks}


@rows(
    "schemas, disjoint",
    ([], True),
    ([TEXT, COUNT, NULL], True),
    ([COUNT, {"type": "number"}], False),
    ([COUNT, {"const": 1.5}], True),
    ([TEXT, {}], False),
    ([{"minimum": 1}, {"maximum": 2}], False),
    ([{"const": "a"}, {"enum": ["b", "c"]}], True),
    ([{"enum": ["a"]}, {"enum": ["a", "b"]}], False),
    ([{"const": 1}, {"const": 1.0}], False),
    ([{"const": 1}, {"const": True}], True),
    ([{"const": [1]}, {"const": [1]}], False),
    ([thing("a"), thing("a", "b")], False),
    ([thing("a", kind="x"), thing("a", kind="y")], True),
    ([thing(kind="x"), {**thing(kind="y"), "required": []}], False),
    ([{"properties": {"in": thing(kind=kind)}, "type": "object", "required": ["in"]} for kind in "xy"], True),
    ([{"$ref": "#/$defs/A"}, TEXT], True),
    ([{"$ref": "#/$defs/A"}, COUNT], False),
    ([{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}], False),
    ([{"const": number} for number in range(100)], False),
)
def test_types_values_and_required_fields_tell_schemas_apart(schemas: list[Any], disjoint: bool) -> None:
    assert any(overlaps(schemas, {"$defs": {"A": {"anyOf": [COUNT, NULL]}}})) is not disjoint


@rows(
    "schemas, disjoint",
    ([thing("a"), thing("a", "b")], True),
    ([thing("a"), {**thing("a", "b"), "required": ["a"]}], False),
    ([{**thing("a"), "additionalProperties": TEXT}, thing("a", "b")], False),
    ([thing("a"), thing("a")], False),
)
def test_closed_objects_exclude_required_fields_that_they_lack(schemas: list[Any], disjoint: bool) -> None:
    assert any(overlaps(schemas, {}, closed=True)) is not disjoint


@given(
    st.lists(
        st.sampled_from(
            (
                {},
                TEXT,
                COUNT,
                NULL,
                {"const": 1},
                {"enum": ["a", 2.5]},
                thing("a", kind="x"),
                thing("b", kind="y"),
                {"anyOf": [TEXT, thing("a")]},
                {"allOf": [COUNT]},
                {"type": ["string", "null"]},
            )
        ),
        min_size=2,
        max_size=2,
    ),
    st.sampled_from((None, 1, 2.5, "a", {}, {"a": "", "kind": "x"}, {"b": "", "kind": "y"})),
)
def test_schemas_that_exclude_each_other_accept_no_common_value(schemas: list[Any], value: Any) -> None:
    validators = [compile_schema(schema) for schema in schemas]
    both = all(isinstance(each, Validator) and each.is_valid(value) for each in validators)
    assert not both or any(overlaps(schemas, {}))
    types = SchemaView(schemas[0], {}).types
    kind = "null" if value is None else {int: "integer", float: "number", str: "string", dict: "object"}[type(value)]
    assert not both or not types or kind in types


ROOM: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "note": {"type": ["string", "null"]}, "next": {"$ref": "#/$defs/Room"}},
    "required": ["id"],
}
ROOMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
        "first": {"anyOf": [{"$ref": "#/$defs/Room"}, {"type": "null"}]},
        "free": {"type": "object"},
        "prices": {"type": "object", "additionalProperties": {"type": "object", "properties": {"USD": {}}}},
        "codes": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
        "nothing": {"type": "object", "additionalProperties": False},
        "lists": {"type": "array"},
        "deep": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Room"}}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#/$defs/Room"}]},
        "any": {"description": "Whatever it is."},
        "never": False,
    },
    "$defs": {"Room": ROOM},
}


def leads(schema: dict[str, Any], path: str) -> bool:
    found = members_of(schema)
    for name in path.split("."):
        below = found.step(name)
        if below is None:
            return False
        found = below
    return True


@rows(
    "path",
    *("rooms", "rooms.id", "rooms.next.next.id", "first.id", "free.whatever.more", "prices.suite.USD"),
    *("codes.x-1", "lists.a.b", "deep.id", "pair.id", "any.a.b"),
)
def test_field_that_the_schema_allows_is_reachable(path: str) -> None:
    assert leads(ROOMS, path)


@pytest.mark.parametrize(
    "path", ["room", "rooms.idd", "rooms.id.x", "first.x", "prices.suite.EUR", "nothing.x", "deep.x", "pair.x", "never"]
)
def test_field_that_the_schema_forbids_is_not_reachable(path: str) -> None:
    assert not leads(ROOMS, path)


@rows(
    "schema",
    {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
    {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
    {"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {}}}, "not": {"properties": {"c": {}}}},
    {"$ref": "#/$defs/x", "properties": {"a": {}}, "$defs": {"x": {"properties": {"b": {}}}}},
    {"type": "array", "items": {"type": "array", "items": {"properties": {"a": {}, "b": {}}}}},
)
def test_combined_schemas_are_merged(schema: dict[str, Any]) -> None:
    assert sorted(members_of(schema).reachable) == ["a", "b"]


def test_recursive_list_ends() -> None:
    loop = {"$ref": "#/$defs/L", "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}}
    assert members_of(loop).reachable == []
    assert members_of(loop).step("a") is None
    assert without_empty([[[]], []], members_of(loop)) == [[[]], []]


@rows(
    "schema, declared",
    ({"properties": {"since": {}}}, True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"since": {}}}}}, True),
    ({"patternProperties": {"^s": {}}}, True),
    ({"patternProperties": {"^t": {}}}, False),
    ({"additionalProperties": {"type": "string"}}, False),
    ({"properties": {"since": False}}, False),
    ({}, False),
)
def test_a_name_is_declared_by_itself_or_by_a_pattern(schema: dict[str, Any], declared: bool) -> None:
    assert members_of(schema).declares("since") is declared


def test_empty_optional_members_are_removed_at_every_depth() -> None:
    value = {
        "rooms": [{"id": "", "note": None, "next": {"id": "2", "note": ""}}, {"id": "3", "extra": []}],
        "first": None,
        "free": {"a": {"b": {}}},
        "lists": [None, "", {}, {"a": None}, 0, False],
    }
    assert without_empty(value, members_of(ROOMS)) == {
        "rooms": [{"id": "", "next": {"id": "2"}}, {"id": "3"}],
        "lists": [None, "", {}, {}, 0, False],
    }


@rows(
    "schema",
    {"minProperties": 1},
    {"dependentRequired": {"b": ["a"]}},
    {"const": {"a": None, "b": 1}},
    {"enum": [{"a": None, "b": 1}]},
    {"not": {"maxProperties": 1}},
    {"if": {"required": ["b"]}, "then": {"required": ["a"]}},
)
def test_counted_or_compared_members_are_kept(schema: dict[str, Any]) -> None:
    value = {"a": None, "b": 1}
    assert without_empty(value, members_of(schema)) == value
    assert without_empty({"x": value, "y": []}, members_of({"properties": {"x": schema}})) == {"x": value}


def test_lists_with_unique_items_are_kept() -> None:
    value = {"x": [{"a": None}, {}]}
    assert without_empty(value, members_of({"properties": {"x": {"uniqueItems": True}}})) == value


# Schemas as people write them, each with a value that keeps it.
NAMES = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.sampled_from([None, "", "x", 0, 1, False])


@st.composite
def documented(draw: st.DrawFn, depth: int = 3) -> tuple[dict[str, Any], Any]:
    kind = draw(st.sampled_from(["scalar", "object", "list", "nullable"] if depth else ["scalar"]))
    if kind == "scalar":
        value = draw(SCALARS)
        return draw(st.sampled_from([{}, {"type": ["string", "null", "integer", "boolean"]}])), value
    if kind == "list":
        schema, _ = inner = draw(documented(depth - 1))
        items = [inner[1]] * draw(st.integers(0, 2))
        return {"type": "array", "items": schema}, items
    if kind == "nullable":
        schema, value = draw(documented(depth - 1))
        return {"anyOf": [schema, {"type": "null"}]}, draw(st.sampled_from([value, None]))
    parts = draw(st.dictionaries(NAMES, documented(depth - 1)))
    present = {name: value for name, (_, value) in parts.items() if draw(st.booleans())}
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _) in parts.items()},
        "required": [name for name in present if draw(st.booleans())],
    }
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    if draw(st.booleans()):
        schema = {"allOf": [schema, {"required": [name for name in present if draw(st.booleans())]}]}
    return schema, present


@given(documented())
def test_remaining_value_still_matches_the_schema(documented: tuple[dict[str, Any], Any]) -> None:
    schema, value = documented
    compiled = compile_schema(schema)
    assert isinstance(compiled, Validator)
    assert compiled.is_valid(value)
    if isinstance(value, (dict, list)):
        less = without_empty(value, members_of(schema))
        assert compiled.is_valid(less)
        assert without_empty(less, members_of(schema)) == less


@rows(
    "schema, expected",
    ({"const": 7}, 7),
    ({"enum": ["b", "a"]}, "b"),
    ({"type": "string", "default": "standard"}, "standard"),
    ({"type": "string", "format": "date"}, "2026-01-01"),
    ({"type": "string", "minLength": 3}, "xxx"),
    ({"type": "integer", "minimum": 4}, 4),
    ({"type": "integer", "exclusiveMinimum": 4}, 5),
    ({"type": "number", "maximum": -2}, -2),
    ({"type": ["null", "boolean"]}, False),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, {"a": "x"}),
)
def test_a_sample_has_no_more_than_the_schema_requires(schema: dict[str, Any], expected: Any) -> None:
    assert sample(schema) == expected


@rows(
    "schema",
    {"type": "string", "pattern": "^[0-9]{5}$"},
    {"type": "integer", "multipleOf": 7, "minimum": 3},
    {"type": "string", "minLength": 100_000},
    {"not": {}},
    {"type": "no such type"},
    {"$ref": "#/$defs/missing"},
)
def test_sample_that_cannot_be_guessed_is_none(schema: dict[str, Any]) -> None:
    assert sample(schema) is None


def test_a_schema_that_contains_itself_is_followed_a_few_levels_only() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": ["a"]}
    for _ in range(30):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert sample(schema) is None


_leaf = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": [1, "a"]}, {}])
_keys = st.sampled_from(["type", "enum", "const", "format", "minimum", "minLength", "items", "properties", "required"])
_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=60)
@given(st.dictionaries(_keys, _leaf | _junk, max_size=5))
def test_a_sample_of_any_document_fits_it_or_is_none(schema: dict[str, Any]) -> None:
    value = sample(schema)
    if value is not None:
        compiled = compile_schema(schema)
        assert isinstance(compiled, Validator)
        assert compiled.is_valid(value)
