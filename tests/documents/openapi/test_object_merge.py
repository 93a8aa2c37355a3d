"""Parts of an object are merged, or stay separate if they have other keywords."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.schema_keywords import merge_objects, opened

A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B: dict[str, Any] = {"properties": {"b": {"type": "integer"}}, "required": ["b", "a"]}


def test_properties_and_requirements_are_those_of_all_parts() -> None:
    assert merge_objects([{"title": "Both"}, A, {**B, "title": "B"}]) == {
        "title": "Both",
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }


def test_one_closed_part_closes_the_whole() -> None:
    merged = merge_objects([{**A, "additionalProperties": False}, B])
    assert merged is not None
    assert merged["additionalProperties"] is False


def test_schema_of_additional_properties_is_kept_if_the_parts_agree() -> None:
    text = {"additionalProperties": {"type": "string"}}
    merged = merge_objects([{**A, **text}, {**B, **text}])
    assert merged is not None
    assert merged["additionalProperties"] == {"type": "string"}
    assert merge_objects([{**A, **text}, {**B, "additionalProperties": {"type": "integer"}}]) is None


@pytest.mark.parametrize(
    "part", [{"$ref": "#/$defs/X"}, {"anyOf": [{}]}, {"type": "string"}, {"type": ["object", "null"]}]
)
def test_parts_with_other_keywords_are_not_merged(part: dict[str, Any]) -> None:
    assert merge_objects([A, part]) is None


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"type": "string"}, {"type": "string"}, {"type": "string"}),
        ({"type": "string"}, {"description": "A."}, {"description": "A.", "type": "string"}),
        ({"description": "A."}, {"type": "string"}, {"description": "A.", "type": "string"}),
        ({"type": "string", "title": "x"}, {"type": "string"}, {"type": "string", "title": "x"}),
        ({"type": "string"}, {"minLength": 1}, {"allOf": [{"type": "string"}, {"minLength": 1}]}),
    ],
)
def test_property_of_two_parts_must_match_both(one: dict[str, Any], other: dict[str, Any], both: Any) -> None:
    merged = merge_objects([{"properties": {"p": one}}, {"properties": {"p": other}}])
    assert merged is not None
    assert merged["properties"]["p"] == both


def test_opened_part_loses_only_its_closing_keyword() -> None:
    assert opened({**A, "additionalProperties": False}) == A
    assert opened({**A, "additionalProperties": {}}) == {**A, "additionalProperties": {}}
