"""Schemas moved into a larger document: every reference keeps its target."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service_strategy import objects

from bespeak.contract.schema.subschemas import Parts, references, transplant
from bespeak.text.source.pointer import pointer

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


@pytest.mark.parametrize(
    ("reference", "led"),
    [
        ("#", "#/place"),
        ("#/$defs/A", "#/place/$defs/A"),
        ("#/$defs/a%20b", "#/place/$defs/a%20b"),
        ("#/$defs/a~1b", "#/place/$defs/a~1b"),
        ("#here", "#/place/$defs/A"),
        ("#nowhere", "#nowhere"),
        ("other.json#/x", "other.json#/x"),
    ],
)
def test_a_reference_leads_to_the_new_place(reference: str, led: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}, "$defs": {"A": {"$anchor": "here"}}}
    assert moved(schema)["properties"]["a"] == {"$ref": led}


def test_names_are_left_out_and_properties_of_the_same_name_are_not() -> None:
    schema = {"$schema": "s", "$id": "urn:x", "$anchor": "a", "properties": {"$id": {"type": "string"}, "$ref": {}}}
    assert moved(schema) == {"properties": {"$id": {"type": "string"}, "$ref": {}}}


def test_inside_a_schema_with_an_id_of_its_own_a_reference_means_that_schema() -> None:
    inner = {"$id": "urn:inner", "properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}
    found = moved({"$defs": {"I": inner, "A": {"type": "string"}}})
    assert found["$defs"]["I"]["properties"]["x"] == {"$ref": "#/place/$defs/I/$defs/A"}


def test_a_dynamic_reference_becomes_a_plain_one_beside_another() -> None:
    schema = {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}, "not": {"$ref": "#", "$dynamicRef": "#node"}}
    assert moved(schema) == {
        "items": {"$ref": "#/place"},
        "not": {"$ref": "#/place", "allOf": [{"$ref": "#/place"}]},
    }


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
