"""Closed schemas, compared with the results of a validator."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.subschemas import closed, closing_keyword, is_closed
from bespeak.contract.schema.validation import Validator, compile_schema

A = {"properties": {"a": {"type": "string"}}}


def takes(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    validator = compile_schema(schema)
    assert isinstance(validator, Validator)
    return validator.is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        A,
        {"allOf": [A]},
        {"anyOf": [A, {"required": ["b"]}]},
        {"oneOf": [A]},
        {"if": A},
        {"$ref": "#/$defs/a", "$defs": {"a": A}},
        {"dependentSchemas": {"a": A}},
    ],
)
def test_the_closing_keyword_takes_declared_fields_and_no_others(schema: dict[str, Any]) -> None:
    made = closed(schema)
    assert made == {**schema, closing_keyword(schema): False}
    assert is_closed(made)
    assert not is_closed(schema)
    assert takes(made, {"a": "x"})
    assert takes(schema, {"c": 1})
    assert not takes(made, {"c": 1})


@pytest.mark.parametrize(
    "schema",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
        {"additionalProperties": True, "unevaluatedProperties": False},
        {"unevaluatedProperties": {}},
    ],
)
def test_a_schema_that_declares_every_other_field_is_open(schema: dict[str, Any]) -> None:
    assert not is_closed(schema)
    assert closed(schema) is schema
    assert takes(schema, {"c": 1})
