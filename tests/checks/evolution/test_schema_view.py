"""The parts of anyOf, oneOf and allOf."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.checks.evolution.schema_view import (
    SchemaReferences,
    bare,
    compare_limits,
    match,
    named_types,
    only_alternatives,
    value_texts,
)
from bespeak.contract.schema.view import type_set


def test_equal_parts_are_paired_first_then_those_of_one_name_then_the_last() -> None:
    old = [{"title": "a", "minimum": 1}, {"const": 1}, {"maxLength": 1}]
    new = [{"maxLength": 2}, {"const": 1}, {"title": "a", "minimum": 2}]
    pairs, lost, gained = match(old, new)
    assert [(old.index(one), index) for one, _, index in pairs] == [(1, 1), (0, 2), (2, 0)]
    assert (lost, gained) == ([], [])


def test_parts_without_a_partner_and_ambiguous_names_remain() -> None:
    one, two = {"const": 1}, {"const": 2}
    assert match([one, two], [one]) == ([(one, one, 0)], [two], [])
    pairs, lost, gained = match([{"const": 1}, {"const": 2}], [{"const": 3}, {"const": 4}])
    assert (pairs, len(lost), len(gained)) == ([], 2, 2)
    old = [{"type": "string", "minLength": 1}, {"type": "string", "minLength": 5}]
    assert match(old, [{"type": "string", "minLength": 2}, {"type": "string", "minLength": 6}])[0] == []


def test_single_schema_is_one_alternative_per_type() -> None:
    assert bare({"type": "string", "title": "x", "minLength": 1}) == [{"type": "string", "minLength": 1}]
    assert bare({"type": ["string", "null"]}) == [{"type": "string"}, {"type": "null"}]
    assert only_alternatives({"anyOf": [], "description": "x"}, "anyOf")
    assert not only_alternatives({"anyOf": [], "type": "string"}, "anyOf")


@rows(
    "old, new, keyword, verdict",
    ({"minimum": 1}, {"exclusiveMinimum": 1}, "minimum", "tightened"),
    ({"exclusiveMaximum": 9}, {"maximum": 9}, "maximum", "loosened"),
    ({"minimum": -5}, {}, "minimum", "loosened"),
    ({}, {"maximum": 0}, "maximum", "tightened"),
    ({"minLength": 1}, {"minLength": 0}, "minLength", "loosened"),
    ({}, {"maxItems": 5}, "maxItems", "tightened"),
    ({"maxProperties": 5}, {"maxProperties": 9}, "maxProperties", "loosened"),
    ({"multipleOf": 2}, {"multipleOf": 6}, "multipleOf", "tightened"),
    ({"multipleOf": 0.3}, {"multipleOf": 0.1}, "multipleOf", "loosened"),
    ({"multipleOf": 2}, {"multipleOf": 3}, "multipleOf", "changed"),
    ({"multipleOf": 0}, {"multipleOf": 3}, "multipleOf", "changed"),
    ({"uniqueItems": True}, {}, "uniqueItems", "loosened"),
    # Equivalent limits do not differ.
    ({"minLength": 0}, {}, "", ""),
    ({"minimum": 1}, {"minimum": 1.0}, "", ""),
    ({"uniqueItems": False}, {}, "", ""),
    ({"minimum": "one"}, {"minimum": float("nan")}, "", ""),
    ({"maximum": True}, {}, "", ""),
)
def test_stricter_limit_is_determined(old: Any, new: Any, keyword: str, verdict: str) -> None:
    found = [(keyword, verdict) for keyword, _, _, verdict in compare_limits(old, new)]
    assert found == ([(keyword, verdict)] if keyword else [])


def test_an_exclusive_bound_is_shown_in_words() -> None:
    old, new = {"minimum": 1, "exclusiveMaximum": 9}, {"exclusiveMinimum": 2, "maximum": 5}
    assert list(compare_limits(old, new)) == [
        ("minimum", 1, "more than 2", "tightened"),
        ("maximum", "less than 9", 5, "tightened"),
    ]


def resolved(root: Any) -> Any:
    return SchemaReferences(root).resolve(root)


@rows(
    "root, meaning",
    ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "string"}}}, {"type": "string"}),
    ({"$ref": "#/$defs/a%20b~1%C3%BC", "$defs": {"a b/ü": {"type": "string"}}}, {"type": "string"}),
    (
        {"$ref": "#/$defs/a", "title": "x", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"minimum": 1}}},
        {"minimum": 1, "title": "x"},
    ),
    ({"$ref": "#/anyOf/0", "x": 1, "anyOf": [{"const": 1}]}, {"const": 1, "x": 1, "anyOf": [{"const": 1}]}),
    (
        {"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"minimum": 1}}},
        {"allOf": [{"minimum": 1}, {"minimum": 2}]},
    ),
    ({"allOf": [{"type": "string"}], "minLength": 1}, {"type": "string", "minLength": 1}),
    ({"$ref": "#/$defs/a", "$defs": {"a": False}}, {"not": {}}),
)
def test_reference_is_replaced_by_its_target(root: Any, meaning: Any) -> None:
    assert resolved(root) == meaning


@pytest.mark.parametrize("reference", ["#/nowhere", "#anchor", "http://example.com/x", "#/$defs/0", 7, "#/$defs/a/b/c"])
def test_dangling_reference_stays(reference: Any) -> None:
    assert resolved({"$ref": reference, "$defs": {"a": 1}})["$ref"] == reference


def test_node_is_resolved_once_and_a_cycle_of_references_ends() -> None:
    assert "$ref" in resolved({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})
    root = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}
    references = SchemaReferences(root)
    node = root["properties"]["a"]
    assert references.resolve(node) is references.resolve(node)


@rows(
    "schema, shown",
    ({}, "any"),
    ({"type": "number"}, "number"),
    ({"type": ["null", "integer"]}, "integer or null"),
    ({"enum": ["a", None, 1, 0.5, True, [], {}]}, "any"),
    ({"const": 2.0}, "integer"),
    ({"const": True}, "boolean"),
    ({"type": "colour"}, "nothing"),
    ({"type": ["string", {}, None, ["number"]]}, "string"),
    ({"enum": "no list"}, "any"),
    ({"const": float("inf")}, "number"),
)
def test_types_are_named_as_in_json_schema(schema: Any, shown: str) -> None:
    assert named_types(type_set(schema)) == shown


def test_integer_is_a_number_and_values_are_compared_as_json() -> None:
    assert type_set({"type": "integer"}) < type_set({"type": "number"})
    assert list(value_texts({"enum": [1, True, 1.0, "1"]}) or ()) == ["1", "true", '"1"']
    assert value_texts({"type": "string"}) is None
