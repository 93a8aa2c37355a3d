"""One type for each node."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.plain_form import with_single_types
from bespeak.documents.projections.model_tools.schema import NOTHING, SAYS, UNFIT, ToolSchema


def single(node: dict[str, Any]) -> dict[str, Any]:
    return with_single_types(ToolSchema(node, {})).root


@pytest.mark.parametrize(
    ("node", "made"),
    [
        ({"type": ["string"], "minLength": 1, "minimum": 2}, {"type": "string", "minLength": 1}),
        (
            {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 2, "description": "x"},
            {
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 2}, {"type": "null"}],
                "description": "x",
            },
        ),
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"items": {}}, {"type": "array", "items": {}}),
        ({"minimum": 2}, {SAYS: ["At least 2."]}),
        ({"type": ["file"]}, {}),
        ({"enum": ["a", "a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, 2.0]}, {"type": "integer", "enum": [1, 2.0]}),
        ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"enum": ["a", 1], "type": ["number"]}, {"type": "integer", "enum": [1]}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"enum": [True, False]}, {"type": "boolean"}),
        ({"enum": [True]}, {"type": "boolean", "enum": [True]}),
        ({"enum": [{"a": 1}]}, {"type": "object", SAYS: ['One of: {"a":1}.']}),
        (
            {"anyOf": [{"type": ["string", "null"]}, {"type": ["null"]}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"type": ["array"], "items": NOTHING}, {"type": "array", "maxItems": 0}),
        (
            {"prefixItems": [{"type": ["null"]}, NOTHING], "maxItems": 9},
            {"type": "array", "prefixItems": [{"type": "null"}], "maxItems": 1},
        ),
        ({"type": ["object"], "additionalProperties": NOTHING}, {"type": "object", "additionalProperties": False}),
        ({"type": ["object"], "patternProperties": {"a": NOTHING}}, {"type": "object"}),
    ],
)
def test_a_node_has_one_type(node: dict[str, Any], made: dict[str, Any]) -> None:
    assert single(node) == made


def test_a_node_that_accepts_nothing_cannot_be_expressed() -> None:
    assert UNFIT in single(NOTHING)
