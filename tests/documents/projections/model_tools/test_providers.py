"""Converted schemas follow the providers' rules, express every value, and give it back."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.projections.model_tools.provider_rules import broken
from tests.documents.projections.model_tools.round_trip import written
from tests.documents.projections.model_tools.schema_strategy import inputs, is_declared, values

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.projections.model_tools.passes import Mark, ToolSchema
from bespeak.documents.projections.model_tools.tools import StrictLimits, convert, faults

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


def an_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_WIDE = {f"p{p}": {"enum": [f"{p}", *range(40), None, True]} for p in range(60)}
HOSTILE: dict[str, dict[str, Any]] = {
    "10,000 properties": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}},
    "many listed values": {"type": "object", "properties": {"a": {"enum": [f"v{n}" for n in range(5_000)]}}},
    "a union of itself": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Loop"}}, "$defs": {"Loop": LOOP}},
    "itself": {"$ref": "#"},
    "recursive": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "exploding": {
        "$ref": "#/$defs/30",
        "$defs": {
            str(n): {"allOf": [{"$ref": f"#/$defs/{n - 1}"}] * 2} if n else {"type": "object"} for n in range(31)
        },
    },
    "exploding members": {
        "$ref": "#/$defs/30",
        "$defs": {
            str(n): an_object({name: {"$ref": f"#/$defs/{max(n - 1, 0)}", "description": "x"} for name in "ab"})
            for n in range(31)
        },
    },
    "wide unions of wide unions": an_object(
        {"a": {"anyOf": [{**an_object(_WIDE), "required": list(_WIDE), "minProperties": n} for n in range(60)]}}
    ),
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


def test_contradicting_alternatives_are_converted() -> None:
    either = {"oneOf": [{"enum": [1, None, "b"], "description": "x"}, {"type": "object", "required": ["id"]}]}
    schema = {"type": "object", "allOf": [{"anyOf": [{"allOf": [{"enum": [None, True]}]}]}, either]}
    for style in ("openai", "openai-responses", "anthropic", "gemini"):
        assert convert(schema, style, strict=True).schema["properties"] == {}


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


TEXT = {"type": "string"}


def test_faults_name_their_places_and_are_bounded_and_recursion_depends_on_the_provider() -> None:
    root = {"type": "object", "properties": {"a": {"anyOf": [TEXT, {"$ref": "#/$defs/A"}]}}}
    assert faults(ToolSchema(root, {"A": TEXT}), StrictLimits()) == []
    root = {"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [TEXT, {}]}}}}
    found = faults(ToolSchema(root, {"A": an_object({"b": {**TEXT, Mark.UNFIT: "it is odd"}})}), StrictLimits())
    assert found == ["a.[]: any value is accepted", "A: b: it is odd"]
    document = ToolSchema({"$ref": "#/$defs/A"}, {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}})
    assert faults(document, StrictLimits()) == ["a definition contains itself"]
    assert faults(document, StrictLimits(recursion=True)) == []
    assert len(faults(ToolSchema(an_object({str(n): {} for n in range(99)}), {}), StrictLimits())) == 5


def nested(levels: int) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": {"a": nested(levels - 1)}} if levels else TEXT


@rows(
    "root, limits, count",
    ({"type": "object", "properties": dict.fromkeys("abc", TEXT)}, {"properties": 2}, "3 properties"),
    (nested(3), {"levels": 2}, "3 levels"),
    ({"type": "string", "enum": ["a", "b"]}, {"values": 1}, "2 listed values"),
    ({"type": "object", "properties": {"abc": {**TEXT, "enum": ["de"]}}}, {"characters": 4}, "5 characters"),
    ({"type": "string", "enum": ["aa", "bb"]}, {"long_list": (1, 3)}, "4 characters"),
)
def test_limits_are_kept(root: dict[str, Any], limits: Any, count: str) -> None:
    (fault,) = faults(ToolSchema(root, {}), StrictLimits(**limits))
    assert count in fault
    assert faults(ToolSchema(root, {}), StrictLimits()) == []


def converted(style: str, part: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    made = convert({"type": "object", "properties": {"a": part}, "required": ["a"]}, style, strict=strict)
    found: dict[str, Any] = made.schema["properties"]["a"]
    return found


@rows(
    "part, openai, anthropic, gemini",
    ({"type": "string", "minLength": 2}, False, False, False),
    ({"type": "string", "pattern": "^[a-z]{2}$"}, True, True, False),
    ({"type": "string", "pattern": r"^\bx"}, True, False, False),
    ({"type": "string", "pattern": "^x{2000}$"}, True, False, False),
    ({"type": "string", "pattern": "^(?!x)"}, False, False, False),
    ({"type": "string", "format": "uuid"}, True, True, False),
    ({"type": "string", "format": "uri"}, False, True, False),
    ({"type": "string", "format": "date"}, True, True, True),
    ({"type": "integer", "minimum": 2}, True, False, True),
    ({"type": "integer", "exclusiveMinimum": 2}, True, False, False),
    ({"type": "array", "items": {"type": "string"}, "minItems": 1}, True, True, True),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2}, True, False, True),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, False, False, False),
    ({"type": "boolean", "enum": [True]}, True, True, False),
    ({"type": "integer", "enum": [1]}, True, True, True),
)
def test_a_keyword_is_kept_or_said(part: dict[str, Any], openai: bool, anthropic: bool, gemini: bool) -> None:
    for style, kept in (("openai", openai), ("anthropic", anthropic), ("gemini", gemini)):
        made = converted(style, part)
        assert (made == part) is kept, (style, made)
        assert ("description" in made) is not kept


def test_without_strict_mode_keywords_stay_and_null_is_written_for_each_provider() -> None:
    part = {"type": "string", "minLength": 2, "default": "ab", "examples": ["xy"]}
    assert converted("openai", part, strict=False) == part
    assert converted("anthropic", part, strict=False) == part
    part = {"type": ["string", "null"]}
    assert converted("openai", part) == part
    assert converted("gemini", part) == part
    assert converted("anthropic", part) == {"anyOf": [{"type": "string"}, {"type": "null"}]}
