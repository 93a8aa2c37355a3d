"""Every schema is self-contained, and none is too large for an endpoint."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.documents.openapi.reading import compiled, read, read_schema, rules
from tests.documents.openapi.reading import document as described

from bespeak.contract.schema.subschemas import nodes
from bespeak.documents.openapi.schema_conversion import LIMITS


def web(count: int, links: int) -> dict[str, Any]:
    """Build schemas that each refer to several others, so that each reaches all."""
    return {
        f"Thing{n}": {
            "type": "object",
            "description": "A thing that knows others. " * 3,
            "properties": {
                "name": {"type": "string"},
                **{f"to{k}": {"$ref": f"#/components/schemas/Thing{(n * links + k) % count}"} for k in range(links)},
            },
        }
        for n in range(count)
    }


@pytest.mark.parametrize("direction", ["input", "output"])
def test_schema_with_too_many_references_keeps_the_nearest(direction: Any) -> None:
    made, found = read_schema({"$ref": "#/components/schemas/Thing1"}, direction=direction, schemas=web(500, 5))
    limits = LIMITS[direction]
    assert 20 < len(made["$defs"]) <= limits.definitions
    assert sum(1 for _ in nodes(made)) <= limits.parts + limits.definitions
    assert len(msgspec.json.encode(made)) <= limits.length * 1.2
    assert rules(found) == ["D162"]
    assert {f"Thing{n}" for n in range(5, 10)} <= made["$defs"].keys()
    compiled(made)


def test_only_reachable_definitions_are_included() -> None:
    made, found = read_schema({"type": "array", "items": {"$ref": "#/components/schemas/Thing7"}}, schemas=web(9, 1))
    assert list(made["$defs"]) == ["Thing7"]
    assert found == []


def test_open_schema_keeps_its_type() -> None:
    schemas = web(500, 5)
    made, _ = read_schema({"$ref": "#/components/schemas/Thing1"}, schemas=schemas)
    opened = [
        part
        for definition in made["$defs"].values()
        for part in definition["properties"].values()
        if part == {"type": "object"}
    ]
    assert opened
    assert schemas == web(500, 5)


def test_a_large_schema_without_references_loses_its_innermost_parts() -> None:
    schema: dict[str, Any] = {"type": "string", "description": "x" * 50}
    for _ in range(4):
        schema = {"type": "object", "properties": {f"p{k}": schema for k in range(7)}}
    made, found = read_schema(schema)
    assert rules(found) == ["D162"]
    assert made["properties"]["p0"]["properties"]
    assert len(msgspec.json.encode(made)) <= LIMITS["input"].length
    compiled(made)


def test_a_schema_of_thousands_of_properties_is_left_open() -> None:
    made, found = read_schema({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}})
    assert (made, rules(found)) == ({"type": "object"}, ["D162"])


def test_references_that_multiply_are_left_open() -> None:
    schemas: dict[str, Any] = {
        f"S{n}": {
            "anyOf": [
                {"$ref": f"#/components/schemas/S{n + 1}"},
                {"items": {}},
                {"not": {"$ref": f"#/components/schemas/S{n + 1}"}},
            ]
        }
        for n in range(18)
    }
    schemas["S18"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    made, found = read_schema({"$ref": "#/components/schemas/S0"}, schemas=schemas)
    compiled(made)
    assert "D162" in rules(found)


def test_equal_schemas_are_one_object() -> None:
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing1"}}}}
    operation = {"responses": {"200": {"description": "Good.", **content}}}
    made, _ = read(described({f"/{n}": {"get": operation} for n in range(3)}, components={"schemas": web(50, 3)}))
    first, second, _ = (operation.answers[0].schema for operation in made.operations)
    assert first is not None
    assert second is not None
    assert first["$defs"] is second["$defs"]


def test_invalid_defaults_are_dropped() -> None:
    schema = {
        "type": "object",
        "properties": {
            "good": {"allOf": [{"$ref": "#/components/schemas/Size"}], "default": {"beds": 1}},
            "bad": {"allOf": [{"$ref": "#/components/schemas/Size"}], "default": {"beds": "two"}},
        },
    }
    size = {"type": "object", "properties": {"beds": {"type": "integer"}}}
    made, found = read_schema(schema, schemas={"Size": size})
    assert "default" in made["properties"]["good"]
    assert "default" not in made["properties"]["bad"]
    assert rules(found) == ["D163"]
