"""Schemas in work: passes, references, marks."""

from __future__ import annotations

from bespeak.documents.projections.model_tools.schema import (
    OPTIONAL,
    Node,
    ToolSchema,
    alternatives,
    is_nullable,
    nodes,
    resolved,
)

TEXT = {"type": "string"}
NULL = {"type": "null"}


def test_a_pass_sees_children_before_their_parents_and_every_definition() -> None:
    seen: list[str] = []

    def note(node: Node, _: object) -> Node:
        seen.append(node["type"])
        return node

    ToolSchema({"type": "array", "items": TEXT}, {"A": NULL}).apply(note)
    assert sorted(seen) == ["array", "null", "string"]
    assert seen.index("string") < seen.index("array")


def test_definitions_without_references_are_left_out() -> None:
    used = {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"$ref": "#/$defs/A"}}
    made = ToolSchema({"$ref": "#/$defs/A"}, {**used, "C": TEXT}).pruned()
    assert made.definitions == used


def test_marks_are_not_part_of_the_schema() -> None:
    marked = {"properties": {"~name": {**TEXT, OPTIONAL: ["a"]}}, OPTIONAL: ["~name"]}
    assert ToolSchema(marked, {"A": marked}).schema() == {
        "properties": {"~name": TEXT},
        "$defs": {"A": {"properties": {"~name": TEXT}}},
    }


def test_alternatives_are_found_through_references_and_circles() -> None:
    definitions: dict[str, Node] = {
        "A": {"anyOf": [TEXT, {"$ref": "#/$defs/B"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, NULL]},
    }
    assert list(alternatives({"$ref": "#/$defs/A"}, definitions)) == [TEXT, NULL]
    assert is_nullable({"$ref": "#/$defs/A"}, definitions)
    assert not is_nullable(TEXT, definitions)
    assert is_nullable({}, {})


def test_nodes_are_found_without_following_references() -> None:
    root = {"properties": {"a": {"items": TEXT}}, "anyOf": [{"$ref": "#/$defs/A"}]}
    assert len(list(nodes(root))) == 4
    assert resolved({"$ref": "#/$defs/A"}, {"A": TEXT}) is TEXT
