"""Undeclared members as pairs."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.passes import list_members, without_patterns
from bespeak.documents.projections.model_tools.schema import MAP, REST, SAYS, UNFIT

COUNT = {"type": "integer"}
PAIR = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "value": COUNT},
    "required": ["key", "value"],
    "additionalProperties": False,
}
SAID = "Pairs of key and value, one for each member."


def test_an_object_of_undeclared_members_becomes_a_list_of_pairs() -> None:
    node = {"type": "object", "additionalProperties": COUNT, "minProperties": 2, "description": "Stock."}
    assert list_members(node, {}) == {
        "type": "array",
        "items": PAIR,
        "minItems": 2,
        "description": "Stock.",
        MAP: True,
        SAYS: [SAID],
    }


def test_undeclared_members_beside_declared_ones_are_a_member_with_a_free_name() -> None:
    node = {"type": "object", "properties": {"other_members": {}}, "additionalProperties": COUNT}
    made = list_members(node, {})
    assert made[REST] == "other_members_"
    assert made["properties"]["other_members_"] == {"type": "array", "items": PAIR, SAYS: [SAID]}
    assert made["required"] == ["other_members_"]


def test_members_by_pattern_are_undeclared_members_with_a_rule_for_keys() -> None:
    node = {"type": "object", "patternProperties": {"^x": COUNT}, "additionalProperties": False}
    assert list_members(node, {})[SAYS] == [SAID, "Keys match ^x."]
    assert without_patterns(node, {}) == {"type": "object", "additionalProperties": COUNT, SAYS: ["Keys match ^x."]}


@pytest.mark.parametrize(
    ("node", "unfit"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "properties": {}}, True),
        ({"type": "object", "additionalProperties": {}}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}, True),
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"type": "object", "additionalProperties": False}, False),
    ],
)
def test_members_of_any_kind_cannot_be_listed(node: dict[str, Any], unfit: bool) -> None:
    assert (UNFIT in list_members(node, {})) is unfit
