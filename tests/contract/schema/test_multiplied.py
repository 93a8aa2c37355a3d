"""Short schemas that cause endless work."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.subschemas import nodes
from bespeak.contract.schema.validation import Validator, compile_schema, excess
from bespeak.protocol.exchange.refusal import Fault


def multiplying(keyword: str, levels: int, base: str = "#") -> dict[str, Any]:
    """Build levels that each refer to the next one ten times."""
    shared: dict[str, Any] = {
        f"s{level}": {keyword: [{"$ref": f"{base}/$defs/s{level + 1}"}] * 10} for level in range(levels)
    }
    shared[f"s{levels}"] = {"type": "object"}
    return {"$defs": shared, "$ref": "#/$defs/s0"}


def inside_another_resource() -> dict[str, Any]:
    return {"$defs": {"inner": {"$id": "urn:inner", **multiplying("allOf", 30)}}, "$ref": "#/$defs/inner"}


def by_anchors() -> dict[str, Any]:
    shared: dict[str, Any] = {
        f"s{level}": {"$anchor": f"a{level}", "anyOf": [{"$ref": f"#a{level + 1}"}] * 10} for level in range(30)
    }
    return {"$defs": {**shared, "s30": {"$anchor": "a30"}}, "$ref": "#a0"}


def of_conditions() -> dict[str, Any]:
    shared: dict[str, Any] = {
        f"s{level}": {key: {"$ref": f"#/$defs/s{level + 1}"} for key in ("if", "then", "else", "not")}
        for level in range(30)
    }
    return {"$defs": {**shared, "s30": {}}, "$ref": "#/$defs/s0"}


def of_dependent_schemas() -> dict[str, Any]:
    shared: dict[str, Any] = {
        f"s{level}": {"dependentSchemas": {name: {"$ref": f"#/$defs/s{level + 1}"} for name in "abcd"}}
        for level in range(30)
    }
    return {"$defs": {**shared, "s30": {}}, "$ref": "#/$defs/s0"}


def everyone_asks_everyone() -> dict[str, Any]:
    shared = {f"s{one}": {"allOf": [{"$ref": f"#/$defs/s{other}"} for other in range(50)]} for one in range(50)}
    return {"$defs": shared, "$ref": "#/$defs/s0"}


@pytest.mark.parametrize(
    "schema",
    [
        multiplying("allOf", 30),
        multiplying("anyOf", 30),
        multiplying("oneOf", 30),
        {**multiplying("allOf", 30), "unevaluatedProperties": False},
        inside_another_resource(),
        by_anchors(),
        of_conditions(),
        of_dependent_schemas(),
        everyone_asks_everyone(),
    ],
)
def test_a_schema_that_multiplies_itself_is_refused(schema: dict[str, Any]) -> None:
    fault = compile_schema(schema)
    assert isinstance(fault, Fault)
    assert "multiply" in fault.message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        multiplying("allOf", 3),
        multiplying("prefixItems", 30),
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}, {"$ref": "#/allOf/7"}, {"$ref": "#/allOf/x"}]},
        {"properties": {"child": {"$ref": "#"}, "other": {"$ref": "#"}}},
        {"$defs": {"a": {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}}, "$ref": "#/$defs/a"},
        {"$ref": 7, "allOf": 7, "dependentSchemas": [], "not": True},
    ],
)
def test_references_to_parts_of_the_value_are_not_multiplied(schema: dict[str, Any]) -> None:
    assert excess(nodes(schema)) is None


def chain(length: int, last: dict[str, Any]) -> dict[str, Any]:
    shared: dict[str, Any] = {f"s{n}": {"$ref": f"#/$defs/s{n + 1}"} for n in range(length)}
    return {"$defs": {**shared, f"s{length}": last}, "$ref": "#/$defs/s0", "unevaluatedProperties": False}


def test_a_chain_of_references_is_usable() -> None:
    usable = compile_schema(chain(190, {"type": "object"}))
    assert isinstance(usable, Validator)
    assert usable.is_valid({})


@pytest.mark.parametrize("last", [{"type": "object"}, {"$ref": "#/$defs/s0"}])
@pytest.mark.parametrize("length", [250, 9_000])
def test_a_chain_that_overflows_the_native_stack_is_refused(length: int, last: dict[str, Any]) -> None:
    fault = compile_schema(chain(length, last))
    assert isinstance(fault, Fault)
    assert "form a chain" in fault.message


def test_too_many_references_are_refused() -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/name"} for number in range(10_001)}
    fault = compile_schema({"$defs": {"name": {"type": "string"}}, "properties": properties})
    assert isinstance(fault, Fault)
    assert "more than 10,000 references" in fault.message
