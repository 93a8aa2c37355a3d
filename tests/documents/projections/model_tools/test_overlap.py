"""Alternatives that a value can meet at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.passes import are_disjoint, mark_ambiguous
from bespeak.documents.projections.model_tools.schema import MAP, OPTIONAL, UNFIT, ToolSchema

TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def thing(*names: str, kind: str | None = None, **marks: Any) -> dict[str, Any]:
    properties: dict[str, Any] = dict.fromkeys(names, TEXT)
    if kind is not None:
        properties["kind"] = {"type": "string", "enum": [kind]}
    return {"type": "object", "properties": properties, "required": list(properties), **marks}


@pytest.mark.parametrize(
    ("options", "disjoint"),
    [
        ([TEXT, COUNT, NULL], True),
        ([COUNT, {"type": "number"}], False),
        ([TEXT, {}], False),
        ([{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}], True),
        ([{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a", "b"]}], False),
        ([thing("a"), thing("a", "b")], True),
        ([thing("a"), {**thing("a", "b"), "required": ["a"]}], False),
        ([{**thing("a"), "additionalProperties": TEXT}, thing("a", "b")], False),
        ([thing("a", kind="x"), thing("a", kind="y")], True),
        ([thing("a"), thing("a")], False),
        ([{"$ref": "#/$defs/A"}, TEXT], True),
        ([{"$ref": "#/$defs/A"}, COUNT], False),
        ([{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}], False),
    ],
)
def test_types_values_and_members_tell_alternatives_apart(options: list[Any], disjoint: bool) -> None:
    assert are_disjoint(options, {"A": {"anyOf": [COUNT, NULL]}}) is disjoint


def test_more_alternatives_than_can_be_compared_count_as_overlapping() -> None:
    assert not are_disjoint([{"type": "string", "enum": [str(number)]} for number in range(100)], {})


@pytest.mark.parametrize(
    ("options", "ambiguous"),
    [
        ([thing("a", "b", **{OPTIONAL: ["a"]}), thing("a", "b", **{OPTIONAL: ["b"]})], True),
        ([thing("a", "b", **{OPTIONAL: ["a"]}), thing("a", "b", **{OPTIONAL: ["a"]})], False),
        ([thing("a", **{OPTIONAL: ["a"]}), thing("a", "b")], False),
        ([thing("a"), thing("a")], False),
        ([{"type": "array", "items": TEXT, MAP: True}, {"type": "array", "items": TEXT}], True),
        ([{"type": "array", "items": TEXT, MAP: True}, TEXT], False),
        ([{"$ref": "#/$defs/Changing"}, thing("a")], True),
        ([{"$ref": "#/$defs/Plain"}, thing("a")], False),
    ],
)
def test_a_union_is_marked_if_a_value_may_mean_two_things(options: list[Any], ambiguous: bool) -> None:
    definitions = {
        "Changing": thing("a", **{OPTIONAL: ["a"]}),
        "Plain": {**thing("a"), "properties": {"a": {"$ref": "#/$defs/Other"}}},
        "Other": TEXT,
    }
    made = mark_ambiguous(ToolSchema({"anyOf": options}, definitions))
    assert (UNFIT in made.root) is ambiguous
