"""Types and listed values of a schema."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.checks.evolution.schema_view import named_types, type_set, value_texts


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, "any"),
        ({"type": "number"}, "number"),
        ({"type": ["null", "integer"]}, "integer or null"),
        ({"enum": ["a", None, 1, 0.5, True, [], {}]}, "any"),
        ({"const": 2.0}, "integer"),
        ({"const": True}, "boolean"),
        ({"type": "colour"}, "nothing"),
        ({"type": ["string", {}, None, ["number"]]}, "string"),
        ({"enum": "no list"}, "any"),
        ({"const": float("inf")}, "number"),
    ],
)
def test_types_are_named_as_in_json_schema(schema: Any, shown: str) -> None:
    assert named_types(type_set(schema)) == shown


def test_an_integer_is_a_number() -> None:
    assert type_set({"type": "integer"}) < type_set({"type": "number"})


def test_values_are_compared_as_json() -> None:
    assert list(value_texts({"enum": [1, True, 1.0, "1"]}) or ()) == ["1", "true", '"1"']
    assert value_texts({"type": "string"}) is None
