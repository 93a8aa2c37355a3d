"""A walk over a schema visits only schema positions."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service_strategy import objects

from bespeak.contract.schema.subschemas import (
    MAX_DEPTH,
    Parts,
    Steps,
    children,
    closed,
    closing_keyword,
    inline,
    is_closed,
    local_pointer,
    nodes,
    references,
    resolve,
    rewrite,
    target,
    transplant,
    with_children,
)
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.text.source.pointer import pointer

SCHEMA: dict[str, Any] = {
    "properties": {"default": {"title": "a property"}},
    "default": {"title": "data"},
    "anyOf": [{"title": "an alternative"}, True],
    "items": {"not": {"title": "below"}},
    "required": ["default"],
}


def test_nodes_are_visited_at_every_depth_and_data_is_not() -> None:
    titles = {node["title"]: at for at, node in nodes(SCHEMA) if "title" in node}
    assert titles == {
        "a property": ("properties", "default"),
        "an alternative": ("anyOf", 0),
        "below": ("items", "not"),
    }


def test_walk_ends_below_the_greatest_depth() -> None:
    deep: dict[str, Any] = {}
    for _ in range(10 * MAX_DEPTH):
        deep = {"not": deep}
    assert sum(1 for _ in nodes(deep)) == MAX_DEPTH + 2


def test_children_are_those_directly_below_and_are_changed_in_a_copy() -> None:
    assert children(SCHEMA) == [{"title": "a property"}, {"title": "an alternative"}, {"not": {"title": "below"}}]
    changed = with_children(SCHEMA, len)
    assert changed == {**SCHEMA, "properties": {"default": 1}, "anyOf": [1, True], "items": 1}
    assert SCHEMA["items"] == {"not": {"title": "below"}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "abc", "2026-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "beds", "below", "of", "a/b", "$ref"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def moved(schema: dict[str, Any]) -> dict[str, Any]:
    return transplant(schema, lambda parts: "#/place" + quote(pointer(parts), safe="/~$"))


@rows(
    "reference, led",
    ("#", "#/place"),
    ("#/$defs/A", "#/place/$defs/A"),
    ("#/$defs/a%20b", "#/place/$defs/a%20b"),
    ("#/$defs/a~1b", "#/place/$defs/a~1b"),
    ("#here", "#/place/$defs/A"),
    ("#nowhere", "#nowhere"),
    ("other.json#/x", "other.json#/x"),
)
def test_a_reference_leads_to_the_new_place(reference: str, led: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}, "$defs": {"A": {"$anchor": "here"}}}
    assert moved(schema)["properties"]["a"] == {"$ref": led}


def test_moved_schema_loses_names_keeps_inner_documents_and_has_plain_references() -> None:
    schema = {"$schema": "s", "$id": "urn:x", "$anchor": "a", "properties": {"$id": {"type": "string"}, "$ref": {}}}
    assert moved(schema) == {"properties": {"$id": {"type": "string"}, "$ref": {}}}
    inner = {"$id": "urn:inner", "properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}
    found = moved({"$defs": {"I": inner, "A": {"type": "string"}}})
    assert found["$defs"]["I"]["properties"]["x"] == {"$ref": "#/place/$defs/I/$defs/A"}
    schema = {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}, "not": {"$ref": "#", "$dynamicRef": "#node"}}
    assert moved(schema) == {"items": {"$ref": "#/place"}, "not": {"$ref": "#/place", "allOf": [{"$ref": "#/place"}]}}


def test_data_with_a_reference_is_removed_and_other_data_is_kept() -> None:
    data = {"$ref": "#/a"}
    assert moved({"const": data, "enum": [data], "default": data, "examples": [[data], 1]}) == {
        "const": data,
        "enum": [data],
    }
    assert moved({"default": {"a": 1}, "examples": [2]}) == {"default": {"a": 1}, "examples": [2]}


def test_the_places_a_schema_refers_to_are_found() -> None:
    found: list[Parts] = list(references({"$ref": "#/$defs/A", "items": [{"$ref": "#"}], "$defs": {"A": {}}}))
    assert sorted(found) == [(), ("$defs", "A")]


@given(objects(flat=False), JSON)
def test_a_moved_schema_admits_what_it_did_before(schema: dict[str, Any], value: Any) -> None:
    whole = {"$ref": "#/place", "place": moved(schema)}
    before = jsonschema_rs.Draft202012Validator(schema)
    assert jsonschema_rs.Draft202012Validator(whole).is_valid(value) == before.is_valid(value)


ROOT: dict[str, Any] = {
    "$defs": {
        "A": {"$ref": "#/$defs/B", "title": "a"},
        "B": {"type": "string", "title": "b"},
        "loop": {"$ref": "#/$defs/loop"},
        "a/b": {"type": "string"},
        "a%b": {"type": "string"},
    },
    "prefixItems": [{"type": "string"}],
}


@pytest.mark.parametrize(
    ("reference", "at"),
    [("#", ""), ("#/a~1b", "/a~1b"), ("#/a%25b", "/a%b"), ("#name", None), ("", None), ("x.json#/a", None), (3, None)],
)
def test_pointer_is_that_of_a_reference_into_its_own_document(reference: object, at: str | None) -> None:
    assert local_pointer(reference) == at


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/B", "#/$defs/a~1b", "#/$defs/a%2Fb", "#/$defs/a%25b", "#/prefixItems/0", "#/$defs/C", "#/prefixItems/1"],
)
def test_target_exists_exactly_if_a_validator_finds_one(reference: str) -> None:
    try:
        found = not jsonschema_rs.Draft202012Validator({**ROOT, "$ref": reference}).is_valid(1)
    except (jsonschema_rs.ValidationError, ValueError):
        found = False
    assert (target(reference, ROOT) is not None) is found


def test_reference_is_overridden_by_keywords_beside_it_and_followed_a_limited_number_of_times() -> None:
    assert resolve({"$ref": "#/$defs/A", "description": "c"}, ROOT, most=5) == {
        "type": "string",
        "title": "a",
        "description": "c",
    }
    assert resolve({"$ref": "#/$defs/A"}, ROOT, most=1)["$ref"] == "#/$defs/B"
    assert resolve({"$ref": "#/$defs/loop"}, ROOT, most=5) == {"$ref": "#/$defs/loop"}


@pytest.mark.parametrize("schema", [{"$ref": "#/nothing", "title": "x"}, {"$ref": "y.json", "title": "x"}])
def test_dangling_reference_adds_nothing(schema: dict[str, str]) -> None:
    assert resolve(schema, ROOT, most=5) == {"title": "x"}


def test_rewriting_changes_references_and_leaves_names_and_data() -> None:
    schema = {
        "$ref": "#/a",
        "properties": {"$ref": {"$dynamicRef": "#/b"}},
        "default": {"$ref": "#/c"},
        "anyOf": [{"$ref": "#/d", "title": "gone"}],
    }
    assert rewrite(schema, lambda reference: None if reference == "#/d" else reference.upper()) == {
        "$ref": "#/A",
        "properties": {"$ref": {"$dynamicRef": "#/B"}},
        "default": {"$ref": "#/c"},
        "anyOf": [{"title": "gone"}],
    }


def test_references_are_replaced_in_a_schema_and_its_alternatives() -> None:
    root = {
        "$defs": {"Size": {"enum": ["s", "l"]}, "Alias": {"$ref": "#/$defs/Size"}, "Loop": {"$ref": "#/$defs/Loop"}}
    }
    optional = {"anyOf": [{"$ref": "#/$defs/Alias"}, {"type": "null"}], "default": None}
    assert inline(optional, root) == {"anyOf": [{"enum": ["s", "l"]}, {"type": "null"}], "default": None}
    assert inline({"$ref": "#/$defs/Loop"}, root) == {"$ref": "#/$defs/Loop"}
    assert inline({"$ref": "#/$defs/Missing"}, root) == {"$ref": "#/$defs/Missing"}


A = {"properties": {"a": {"type": "string"}}}


def takes(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    validator = compile_schema(schema)
    assert isinstance(validator, Validator)
    return validator.is_valid(value)


@rows(
    "schema",
    A,
    {"allOf": [A]},
    {"anyOf": [A, {"required": ["b"]}]},
    {"oneOf": [A]},
    {"if": A},
    {"$ref": "#/$defs/a", "$defs": {"a": A}},
    {"dependentSchemas": {"a": A}},
)
def test_the_closing_keyword_takes_declared_fields_and_no_others(schema: dict[str, Any]) -> None:
    made = closed(schema)
    assert made == {**schema, closing_keyword(schema): False}
    assert is_closed(made)
    assert not is_closed(schema)
    assert takes(made, {"a": "x"})
    assert takes(schema, {"c": 1})
    assert not takes(made, {"c": 1})


@rows(
    "schema",
    {"additionalProperties": True},
    {"additionalProperties": {"type": "integer"}},
    {"additionalProperties": True, "unevaluatedProperties": False},
    {"unevaluatedProperties": {}},
)
def test_a_schema_that_declares_every_other_field_is_open(schema: dict[str, Any]) -> None:
    assert not is_closed(schema)
    assert closed(schema) is schema
    assert takes(schema, {"c": 1})


TARGET = {"type": "string", "$anchor": "here"}


@rows(
    "schema",
    {"$ref": "#/$defs/a"},
    {"$ref": "#here"},
    {"$dynamicRef": "#here"},
    {"$ref": "#/%24defs/a"},
    {"allOf": [TARGET]},
    {"anyOf": [TARGET]},
    {"oneOf": [TARGET]},
    {"if": TARGET},
    {"not": TARGET},
    {"dependentSchemas": {"b": TARGET}},
)
def test_step_leads_to_schemas_of_the_same_value(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"a": TARGET}}
    assert Steps(list(nodes(whole))).of(whole) == [TARGET]


@rows(
    "schema",
    {"$ref": "#/$defs/missing"},
    {"$ref": "#/$defs/a/0/1"},
    {"$ref": "https://example.com/x"},
    {"$ref": 5},
    {"allOf": [True]},
    {"properties": {"a": TARGET}, "items": TARGET},
)
def test_parts_of_the_value_and_dangling_references_are_not_steps(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"a": TARGET}}
    assert Steps(list(nodes(whole))).of(whole) == []


def test_a_reference_inside_a_resource_starts_there() -> None:
    inner: dict[str, Any] = {"$id": "urn:inner", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}
    whole = {"properties": {"x": inner}, "$defs": {"a": TARGET}}
    steps = Steps(list(nodes(whole)))
    assert steps.of(inner) == [{"type": "null"}]
    assert sum(1 for _ in steps.all()) == 4
