"""Converted schemas follow the providers' rules, express every value, and give it back."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.projections.model_tools.provider_rules import broken
from tests.documents.projections.model_tools.round_trip import written
from tests.documents.projections.model_tools.schema_strategy import inputs, is_declared, values

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.projections.model_tools.providers import convert

STYLES = ("openai", "anthropic", "gemini")
LOOP = {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "integer"}]}


@given(inputs(), st.data(), st.sampled_from(STYLES), st.sampled_from([True, True, True, False]))
def test_every_value_of_a_schema_can_be_expressed_and_comes_back(
    schema: dict[str, Any], data: st.DataObject, style: str, strict: bool
) -> None:
    conversion = convert(schema, style, strict=strict)
    assert broken(conversion.schema, style, strict=conversion.strict) == []
    validator = compile_schema(schema)
    if isinstance(validator, Validator):
        value = data.draw(values(schema, schema))
        if isinstance(value, dict) and validator.is_valid(value) and is_declared(value, schema):
            assert written(value, conversion) is not None


def _models() -> list[tuple[str, dict[str, Any]]]:
    import mcp_types  # loading it takes half a second
    from pydantic import BaseModel

    classes = (found for _, found in inspect.getmembers(mcp_types, inspect.isclass) if issubclass(found, BaseModel))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(found.__name__, found.model_json_schema()) for found in list(dict.fromkeys(classes))[::4]]


@pytest.mark.parametrize("style", STYLES)
def test_schemas_of_a_real_protocol_follow_the_rules(style: str) -> None:
    strict = 0
    for name, schema in _models():
        conversion = convert(schema, style)
        assert broken(conversion.schema, style, strict=conversion.strict) == [], name
        strict += conversion.strict
    assert (strict > 5) is (style != "gemini")


def _deep_unions(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = {"anyOf": [{"type": "object", "properties": {"a": made}}, {"type": "object", "properties": {"b": {}}}]}
    return {"type": "object", "properties": {"a": made}}


HOSTILE: dict[str, dict[str, Any]] = {
    "10,000 properties": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}},
    "many listed values": {"type": "object", "properties": {"a": {"enum": [f"v{n}" for n in range(5_000)]}}},
    "a union of itself": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Loop"}}, "$defs": {"Loop": LOOP}},
    "itself": {"$ref": "#"},
    "recursive": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "exploding": {
        "$ref": "#/$defs/30",
        "$defs": {
            str(n): {"allOf": [{"$ref": f"#/$defs/{n - 1}"}, {"$ref": f"#/$defs/{n - 1}"}]} if n else {"type": "object"}
            for n in range(31)
        },
    },
    "exploding members": {
        "$ref": "#/$defs/30",
        "$defs": {
            str(n): {
                "type": "object",
                "properties": {name: {"$ref": f"#/$defs/{max(n - 1, 0)}", "description": "x"} for name in "ab"},
            }
            for n in range(31)
        },
    },
    "wide unions of wide unions": {
        "type": "object",
        "properties": {
            "a": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {f"p{p}": {"enum": [f"{p}", *range(40), None, True]} for p in range(60)},
                        "required": [f"p{p}" for p in range(60)],
                        "minProperties": n,
                    }
                    for n in range(60)
                ]
            }
        },
    },
    "deep unions": _deep_unions(28),
    "references everywhere": {
        "type": "object",
        "properties": {f"p{n}": {"$ref": f"#/properties/p{n + 1}"} for n in range(2_000)},
    },
    "not a schema": {
        "type": 3,
        "properties": [],
        "required": {},
        "anyOf": "x",
        "items": 4,
        "enum": {},
        "allOf": [1, None],
    },
    "nothing": {"type": "object", "properties": {"a": False}, "required": ["a"]},
    "marks": {"type": "object", "properties": {"~optional": {"~map": True, "type": "string"}}, "~wrapped": "x"},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_schema_becomes_one_that_follows_the_rules(kind: str, style: str) -> None:
    conversion = convert(HOSTILE[kind], style)
    assert broken(conversion.schema, style, strict=conversion.strict) == []


@pytest.mark.parametrize("style", STYLES)
def test_a_schema_that_is_too_deep_is_described_by_a_sentence(style: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10_000):
        schema = {"type": "object", "properties": {"a": schema}}
    conversion = convert(schema, style)
    assert conversion.schema["additionalProperties"] is True
    assert conversion.reasons == ("the schema is too deep or too large",)


@pytest.mark.parametrize("style", STYLES)
def test_a_deep_schema_within_the_limit_is_converted(style: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema}}
    conversion = convert(schema, style)
    assert conversion.schema["properties"]["a"]["properties"]["a"]
    assert not conversion.strict


def test_a_schema_is_strict_only_if_nothing_is_lost() -> None:
    def reasons(part: dict[str, Any], style: str) -> tuple[str, ...]:
        return convert({"type": "object", "properties": {"a": part}}, style).reasons

    assert reasons({"type": "string", "minLength": 3}, "openai") == ()
    assert reasons({}, "openai") == ("a: any value is accepted",)
    assert reasons({"type": "object"}, "anthropic") == ("a: an object takes members of any kind",)
    nullable = {"type": ["string", "null"]}
    assert reasons(nullable, "openai") == ("a: null is a value, so it cannot stand for a missing member",)
    assert reasons(nullable, "anthropic") == ()
    assert convert({"type": "object"}, "openai", strict=False).reasons == ()
