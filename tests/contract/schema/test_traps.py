"""Schemas that are unsafe or expensive to use."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.schema.safety import traps

CHOICE = {"anyOf": [{"const": letter} for letter in "abcdef"]}


@pytest.mark.parametrize(
    ("schema", "kind", "at"),
    [
        ({"properties": {"code": {"pattern": "(a+)+$"}}}, "slow-pattern", "/properties/code/pattern"),
        ({"patternProperties": {"^(?=x)": {}}}, "backtracking", "/patternProperties/^(?=x)"),
        ({"allOf": [CHOICE] * 4}, "alternatives", ""),
        ({"enum": list(range(1001))}, "oversized", "/enum"),
        ({"items": {"$dynamicRef": "#node"}}, "dynamic", "/items/$dynamicRef"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "circle", ""),
    ],
)
def test_a_trap_is_reported_with_its_kind_and_place(schema: dict[str, Any], kind: str, at: str) -> None:
    assert [(trap.kind, trap.at) for trap in traps(schema)] == [(kind, at)]


def test_a_plain_schema_has_no_traps() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}}}
    assert list(traps(schema)) == []
