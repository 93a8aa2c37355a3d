"""References and what stands beside them."""

from __future__ import annotations

from typing import Any

from bespeak.documents.projections.model_tools.passes import inline_described, inline_leaves, wrap_described
from bespeak.documents.projections.model_tools.schema import ToolSchema

TEXT = {"type": "string", "description": "An id."}
GUEST = {"type": "object", "properties": {"id": {"$ref": "#/$defs/Id", "description": "Mine."}}}
DESCRIBED = {"$ref": "#/$defs/Guest", "description": "Who stays."}


def test_a_definition_without_parts_is_copied_to_where_it_is_used() -> None:
    definitions = {"Id": TEXT, "Guest": GUEST}
    assert inline_leaves({"$ref": "#/$defs/Id"}, definitions) == TEXT
    assert inline_leaves({"$ref": "#/$defs/Id", "description": "Mine."}, definitions)["description"] == "Mine."
    assert inline_leaves(DESCRIBED, definitions) == DESCRIBED


def test_a_described_reference_becomes_a_union_of_one() -> None:
    assert wrap_described(DESCRIBED, {}) == {"anyOf": [{"$ref": "#/$defs/Guest"}], "description": "Who stays."}
    assert wrap_described({"$ref": "#/$defs/Guest"}, {}) == {"$ref": "#/$defs/Guest"}


def test_small_definitions_are_copied_to_where_they_are_described() -> None:
    made = inline_described(ToolSchema({"items": DESCRIBED}, {"Guest": GUEST, "Id": TEXT})).pruned()
    inner = {"type": "object", "properties": {"id": {**TEXT, "description": "Mine."}}, "description": "Who stays."}
    assert (made.root, made.definitions) == ({"items": inner}, {})


def test_large_and_recursive_definitions_stay_and_lose_the_description() -> None:
    large: dict[str, Any] = {"properties": {str(number): {} for number in range(200)}}
    circle = {"properties": {"below": {"$ref": "#/$defs/Guest"}}}
    for definition in (large, circle):
        made = inline_described(ToolSchema({"items": DESCRIBED}, {"Guest": definition}))
        assert made.root == {"items": {"$ref": "#/$defs/Guest"}}


def test_copies_of_copies_do_not_multiply() -> None:
    definitions: dict[str, Any] = {"0": {"type": "string"}}
    for number in range(1, 60):
        twice = {"$ref": f"#/$defs/{number - 1}", "description": "x"}
        definitions[str(number)] = {"type": "object", "properties": {"a": twice, "b": twice}}
    made = inline_described(ToolSchema({"$ref": "#/$defs/59"}, definitions)).pruned()
    assert len(repr(made.schema())) < 100_000
