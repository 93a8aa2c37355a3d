from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.schema.shape import sample
from bespeak.contract.schema.validation import Validator, compile_schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 7}, 7),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": "string", "default": "standard"}, "standard"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "string", "minLength": 3}, "xxx"),
        ({"type": "integer", "minimum": 4}, 4),
        ({"type": "integer", "exclusiveMinimum": 4}, 5),
        ({"type": "number", "maximum": -2}, -2),
        ({"type": ["null", "boolean"]}, False),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
            {"a": "x"},
        ),
    ],
)
def test_a_sample_has_no_more_than_the_schema_requires(schema: dict[str, Any], expected: Any) -> None:
    assert sample(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[0-9]{5}$"},
        {"type": "integer", "multipleOf": 7, "minimum": 3},
        {"type": "string", "minLength": 100_000},
        {"not": {}},
        {"type": "no such type"},
        {"$ref": "#/$defs/missing"},
    ],
)
def test_sample_that_cannot_be_guessed_is_none(schema: dict[str, Any]) -> None:
    assert sample(schema) is None


def test_a_schema_that_contains_itself_is_followed_a_few_levels_only() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": ["a"]}
    for _ in range(30):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert sample(schema) is None


_leaf = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": [1, "a"]}, {}])
_keys = st.sampled_from(["type", "enum", "const", "format", "minimum", "minLength", "items", "properties", "required"])
_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=60)
@given(st.dictionaries(_keys, _leaf | _junk, max_size=5))
def test_a_sample_of_any_document_fits_it_or_is_none(schema: dict[str, Any]) -> None:
    value = sample(schema)
    if value is not None:
        compiled = compile_schema(schema)
        assert isinstance(compiled, Validator)
        assert compiled.is_valid(value)
