"""Definitions that contain themselves."""

from __future__ import annotations

from typing import Any

from bespeak.documents.projections.model_tools.schema import SAYS, ToolSchema, circular, open_unions, relax_circles


def refers(*names: str) -> dict[str, Any]:
    return {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}, "required": list(names)}


def test_only_definitions_on_a_circle_count() -> None:
    definitions = {"A": refers("B", "C"), "B": refers("A"), "C": refers("D"), "D": {}, "E": refers("A")}
    assert circular(definitions) == {"A", "B"}
    assert circular({"A": refers("A")}) == {"A"}


def test_long_chains_need_no_stack() -> None:
    chain = {str(number): refers(str(number + 1)) for number in range(20_000)}
    assert circular({**chain, "20000": {}}) == frozenset()


def test_a_member_that_leads_back_becomes_optional_and_a_sentence() -> None:
    made = relax_circles(ToolSchema(refers("A"), {"A": refers("A", "B"), "B": {}}))
    assert made.root == refers("A")
    assert made.definitions["A"]["required"] == ["B"]
    assert made.definitions["A"][SAYS] == ["Always give A."]


def test_a_union_of_itself_is_the_union_of_the_others() -> None:
    number = {"type": "integer"}
    definitions: dict[str, Any] = {
        "A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, number]},
        "C": {"anyOf": [{"$ref": "#/$defs/C"}]},
    }
    made = open_unions(ToolSchema({}, definitions)).definitions
    assert made == {"A": {"anyOf": [number]}, "B": {"anyOf": [number]}, "C": {"anyOf": [{}]}}
