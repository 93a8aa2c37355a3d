"""Schemas in work: passes, references, marks."""

from __future__ import annotations

from typing import Any

from bespeak.documents.projections.model_tools.passes import (
    Mark,
    Node,
    ToolSchema,
    circular,
    is_nullable,
    nodes,
    open_unions,
    relax_circles,
    resolved,
    view,
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


def test_unused_definitions_are_left_out_and_nodes_found_without_following_references() -> None:
    used = {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"$ref": "#/$defs/A"}}
    made = ToolSchema({"$ref": "#/$defs/A"}, {**used, "C": TEXT}).pruned()
    assert made.definitions == used
    root = {"properties": {"a": {"items": TEXT}}, "anyOf": [{"$ref": "#/$defs/A"}]}
    assert len(list(nodes(root))) == 4
    assert resolved({"$ref": "#/$defs/A"}, {"A": TEXT}) is TEXT


def test_marks_are_not_part_of_the_schema() -> None:
    marked = {"properties": {"~name": {**TEXT, Mark.OPTIONAL: ["a"]}}, Mark.OPTIONAL: ["~name"]}
    assert ToolSchema(marked, {"A": marked}).schema() == {
        "properties": {"~name": TEXT},
        "$defs": {"A": {"properties": {"~name": TEXT}}},
    }


def test_alternatives_are_found_through_references_and_circles() -> None:
    definitions: dict[str, Node] = {
        "A": {"anyOf": [TEXT, {"$ref": "#/$defs/B"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, NULL]},
    }
    assert [each.keywords for each in view({"$ref": "#/$defs/A"}, definitions).alternatives] == [TEXT, NULL]
    assert is_nullable({"$ref": "#/$defs/A"}, definitions)
    assert not is_nullable(TEXT, definitions)
    assert is_nullable({}, {})


def refers(*names: str) -> dict[str, Any]:
    return {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}, "required": list(names)}


def test_only_definitions_on_a_circle_are_relaxed_and_long_chains_need_no_stack() -> None:
    definitions = {"A": refers("B", "C"), "B": refers("A"), "C": refers("D"), "D": {}, "E": refers("A")}
    assert circular(definitions) == {"A", "B"}
    assert circular({"A": refers("A")}) == {"A"}
    chain = {str(number): refers(str(number + 1)) for number in range(20_000)}
    assert circular({**chain, "20000": {}}) == frozenset()
    made = relax_circles(ToolSchema(refers("A"), {"A": refers("A", "B"), "B": {}}))
    assert (made.root, made.definitions["A"]["required"]) == (refers("A"), ["B"])
    assert made.definitions["A"][Mark.SAYS] == ["Always give A."]


def test_a_union_of_itself_is_the_union_of_the_others() -> None:
    number = {"type": "integer"}
    definitions: dict[str, Any] = {
        "A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, number]},
        "C": {"anyOf": [{"$ref": "#/$defs/C"}]},
    }
    made = open_unions(ToolSchema({}, definitions)).definitions
    assert made == {"A": {"anyOf": [number]}, "B": {"anyOf": [number]}, "C": {"anyOf": [{}]}}
