"""A walk over a schema visits only schema positions."""

from __future__ import annotations

from typing import Any

from bespeak.contract.schema.subschemas import MAX_DEPTH, children, nodes, with_children

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


def test_children_are_those_directly_below() -> None:
    assert children(SCHEMA) == [{"title": "a property"}, {"title": "an alternative"}, {"not": {"title": "below"}}]


def test_children_are_changed_in_a_copy() -> None:
    changed = with_children(SCHEMA, len)
    assert changed == {**SCHEMA, "properties": {"default": 1}, "anyOf": [1, True], "items": 1}
    assert SCHEMA["items"] == {"not": {"title": "below"}}
