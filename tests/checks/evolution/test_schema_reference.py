"""References inside a schema."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.checks.evolution.schema_view import References


def resolved(root: Any) -> Any:
    return References(root).resolve(root)


@pytest.mark.parametrize(
    ("root", "meaning"),
    [
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
    ],
)
def test_reference_is_replaced_by_its_target(root: Any, meaning: Any) -> None:
    assert resolved(root) == meaning


@pytest.mark.parametrize("reference", ["#/nowhere", "#anchor", "http://example.com/x", "#/$defs/0", 7, "#/$defs/a/b/c"])
def test_dangling_reference_stays(reference: Any) -> None:
    assert resolved({"$ref": reference, "$defs": {"a": 1}})["$ref"] == reference


def test_cycle_of_references_ends() -> None:
    assert "$ref" in resolved({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})


def test_a_node_is_resolved_once() -> None:
    root = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}
    references = References(root)
    node = root["properties"]["a"]
    assert references.resolve(node) is references.resolve(node)
