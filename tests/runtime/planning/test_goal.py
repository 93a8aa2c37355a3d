"""Goals are texts or wanted fields; limits that cannot be kept are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from bespeak.runtime.workflows.goals import Goal, read_goal


def test_a_text_is_a_goal_and_constraints_in_words_are_an_assumption() -> None:
    goal = read_goal({"goal": "book a room", "constraints": "cheap", "available_methods": "BOOK, find"})
    assert isinstance(goal, Goal)
    assert (goal.text, goal.methods) == ("book a room", {"BOOK", "FIND"})
    assert goal.assumptions == ("Constraints in words are not checked: cheap",)


@pytest.mark.parametrize(
    "output", [["name"], {"name": "string"}, {"type": "object", "properties": {"name": {"type": "string"}}}]
)
def test_wanted_fields_are_names_types_or_a_schema(output: Any) -> None:
    limits = {"given": {"id": 7, "ok": True}, "max_steps": 2, "impact": "informational", "max_cost": {"USD": "0.5"}}
    goal = read_goal({"goal": {"path": "/guests", "output": output}, "constraints": limits})
    assert isinstance(goal, Goal)
    assert list(goal.output["properties"]) == ["name"]
    assert goal.input == {"id": {"type": "integer"}, "ok": {"type": "boolean"}}
    assert (goal.max_steps, goal.impact, goal.max_cost) == (2, "informational", {"USD": Decimal("0.5")})


@pytest.mark.parametrize(
    ("given", "member"),
    [
        ({"goal": "  "}, "goal"),
        ({"goal": {}}, "goal"),
        ({"goal": "x" * 3000}, "goal"),
        ({"goal": {"output": ["a"]}}, "goal"),
        ({"goal": {"path": "/a", "output": []}}, "goal"),
        ({"goal": {"path": "/a", "output": [1]}}, "goal"),
        ({"goal": {"path": "/a", "output": ["a"] * 101}}, "goal"),
        ({"goal": {"path": 3, "output": ["a"]}}, "goal"),
        ({"goal": {"path": "/a", "output": ["a"], "code": "x"}}, "goal"),
        ({"goal": "a", "available_methods": [3]}, "available_methods"),
        ({"goal": "a", "constraints": {"colour": "red"}}, "constraints"),
        ({"goal": "a", "constraints": {"max_steps": 0}}, "constraints"),
        ({"goal": "a", "constraints": {"max_steps": True}}, "constraints"),
        ({"goal": "a", "constraints": {"impact": "none"}}, "constraints"),
        ({"goal": "a", "constraints": {"given": []}}, "constraints"),
        ({"goal": "a", "constraints": {"max_cost": {"sheep": 3}}}, "constraints"),
    ],
)
def test_a_wrong_parameter_is_named(given: dict[str, Any], member: str) -> None:
    found = read_goal(given)
    assert isinstance(found, tuple)
    assert found[0] == member
