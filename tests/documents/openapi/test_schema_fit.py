"""Schemas for endpoint files: a dropped constraint means that more is accepted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.checks.lint.rules.security import traps
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.adoption.sanitizer import SchemaFitter, bound
from bespeak.documents.toml_text import find_null, toml_text
from bespeak.protocol.exchange.refusal import Fault


def clean(schema: dict[str, Any]) -> dict[str, Any]:
    return SchemaFitter().clean(schema)[0]


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"enum": ["a", None]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"type": "string", "enum": [None]}, {"type": "null"}),
        ({"const": None}, {"type": "null"}),
        ({"type": "string", "default": None}, {"type": "string"}),
        ({"default": {"a": None}}, {}),
        ({"x-internal": True, "example": 1, "xml": {}, "$id": "u", "type": "string"}, {"type": "string"}),
        ({"maximum": 2**70}, {"maximum": float(2**70)}),
        ({"default": 2**70}, {}),
        ({"minimum": float("inf")}, {}),
        ({"properties": {"x-y": {"type": "null"}}}, {"properties": {"x-y": {"type": "null"}}}),
        ({"items": [True, {"type": "string"}]}, {"items": [True, {"type": "string"}]}),
    ],
)
def test_keyword_that_toml_cannot_express_is_rewritten_or_dropped(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    assert clean(schema) == kept


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?!x)y$", "(", "(?<=a)b"])
def test_unportable_pattern_is_dropped_and_reported(pattern: str) -> None:
    kept, lost = SchemaFitter().clean({"type": "string", "pattern": pattern})
    assert kept == {"type": "string"}
    assert "pattern" in lost[0]


def test_repeated_part_is_cleaned_once_and_reported_each_time() -> None:
    part = {"type": "string", "pattern": "("}
    fitter = SchemaFitter()
    first, lost = fitter.clean({"properties": {"a": part, "b": part}})
    assert first["properties"]["a"] is first["properties"]["b"]
    assert len(lost) == 1
    assert fitter.clean({"items": part})[1] == lost


def test_large_schema_is_cut_at_its_deepest_parts() -> None:
    inner = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(60)}}
    large = {"type": "object", "properties": {f"q{number}": inner for number in range(60)}}
    fitted, lost = bound(large)
    assert fitted["properties"].keys() == large["properties"].keys()
    assert fitted["properties"]["q1"] == {"type": "object"}
    assert "deeper" in lost[0]


def test_unused_definitions_are_removed() -> None:
    deep: dict[str, Any] = {"$ref": "#/$defs/A"}
    wide = {f"p{number}": {"type": "object", "properties": {"x": {"items": deep}}} for number in range(1_600)}
    fitted, _ = bound({"type": "object", "properties": wide, "$defs": {"A": {"type": "string"}}})
    assert "$defs" not in fitted


def test_unusable_schema_accepts_any_value_of_its_type() -> None:
    fitted, lost = bound({"type": "object", "required": "no list"})
    assert fitted == {"type": "object"}
    assert lost


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "type",
        "enum",
        "const",
        "default",
        "properties",
        "items",
        "anyOf",
        "pattern",
        "description",
        "required",
        "maximum",
    ]
)


@settings(max_examples=150)
@given(st.dictionaries(KEYS | st.text(max_size=4), VALUES, max_size=5))
def test_any_schema_becomes_one_that_can_be_written_compiled_and_linted(schema: dict[str, Any]) -> None:
    fitted, _ = bound(clean(schema))
    assert find_null(fitted) is None
    assert toml_text({"schema": fitted})
    assert not isinstance(compile_schema(fitted), Fault)
    assert list(traps(fitted)) == []


def test_valid_values_stay_valid() -> None:
    schema = {"type": "object", "properties": {"kind": {"enum": ["a", None]}, "when": {"default": None}}}
    fitted = compile_schema(clean(schema))
    assert isinstance(fitted, Validator)
    assert fitted.is_valid({"kind": None, "when": None})
    assert not fitted.is_valid({"kind": "c"})
