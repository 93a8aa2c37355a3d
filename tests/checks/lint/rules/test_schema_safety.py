from __future__ import annotations

from typing import Any

import pytest
from tests.checks.lint.agis_text import advice, document, endpoint, of_endpoint, rules


def output(schema: Any) -> list[str]:
    return of_endpoint(output={"type": "object", "properties": {"a": schema}})


def test_an_ordinary_schema_is_safe() -> None:
    assert output({"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "enum": ["a", "b"]}) == []


@pytest.mark.parametrize("schema", [{"pattern": "^(a+)+$"}, {"patternProperties": {"(a|a)*": {}}}])
def test_slow_patterns_are_found(schema: Any) -> None:
    assert output(schema) == ["X920"]


def test_property_named_pattern_is_not_a_pattern() -> None:
    assert of_endpoint(output={"type": "object", "properties": {"pattern": {"type": "string"}}}) == []


def test_looking_around_is_found() -> None:
    assert output({"type": "string", "pattern": "^(?!a)b"}) == ["X921"]


def alternatives(*, depth: int, width: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"allOf": [{"anyOf": [schema] * width}, {"oneOf": [schema] * width}]}
    return schema


def test_alternatives_inside_alternatives_are_counted() -> None:
    assert output(alternatives(depth=1, width=4)) == []
    assert output(alternatives(depth=3, width=4)) == ["X922"]


def test_many_properties_with_few_alternatives_are_fine() -> None:
    properties = {f"p{number}": {"anyOf": [{"type": "string"}, {"type": "null"}]} for number in range(60)}
    assert of_endpoint(output={"type": "object", "properties": properties}) == []


def test_a_list_of_values_has_an_end() -> None:
    assert output({"enum": list(range(1_000))}) == []
    assert output({"enum": list(range(1_001))}) == ["X923"]


def test_a_schema_has_an_end() -> None:
    properties = {f"p{number}": {"type": "string"} for number in range(2_500)}
    assert of_endpoint(output={"type": "object", "properties": properties}) == ["X923"]


def test_a_schema_is_not_nested_without_end() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    assert output(schema) == ["X923"]


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef"])
def test_references_that_move_are_found(keyword: str) -> None:
    assert "X924" in output({keyword: "#"})


def test_an_id_inside_moves_references() -> None:
    assert output({"$id": "urn:example:a", "type": "string"}) == ["X924"]
    assert "X924" not in of_endpoint(output={"$id": "urn:example:a", "type": "object"})


@pytest.mark.parametrize(
    "schemas",
    [
        {"A": {"$ref": "#/schemas/B"}, "B": {"$ref": "#/schemas/A"}},
        {"A": {"allOf": [{"$ref": "#/schemas/A"}]}},
    ],
)
def test_references_in_a_circle_are_found(schemas: dict[str, Any]) -> None:
    assert rules(document(endpoint(output={"$ref": "#/schemas/A"}), schemas=schemas)) == ["X925"]


def test_tree_is_not_a_cycle() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/schemas/Tree"}}}}
    assert rules(document(endpoint(output={"$ref": "#/schemas/Tree"}), schemas={"Tree": tree})) == []


def test_two_references_to_one_schema_are_not_a_cycle() -> None:
    part = {"$ref": "#/$defs/c"}
    schema = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": part, "b": part, "c": {}}}
    assert of_endpoint(output=schema) == []


def test_a_finding_points_at_the_pattern() -> None:
    whole = document(endpoint(output={"properties": {"a/b": {"pattern": "^(a+)+$"}}}))
    assert advice("X920", whole).pointer == "/endpoints/0/output/properties/a~1b/pattern"
