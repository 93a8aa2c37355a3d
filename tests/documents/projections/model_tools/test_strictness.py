"""Reasons against a strict schema."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.providers import StrictLimits, faults
from bespeak.documents.projections.model_tools.schema import UNFIT, ToolSchema

TEXT = {"type": "string"}


def test_a_schema_without_faults_has_none() -> None:
    root = {"type": "object", "properties": {"a": {"anyOf": [TEXT, {"$ref": "#/$defs/A"}]}}}
    assert faults(ToolSchema(root, {"A": TEXT}), StrictLimits()) == []


def test_a_fault_names_its_place() -> None:
    root = {"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": [TEXT, {}]}}}}
    found = faults(
        ToolSchema(root, {"A": {"type": "object", "properties": {"b": {**TEXT, UNFIT: "it is odd"}}}}), StrictLimits()
    )
    assert found == ["a.[]: any value is accepted", "A: b: it is odd"]


def test_a_definition_may_contain_itself_only_where_the_provider_takes_that() -> None:
    document = ToolSchema({"$ref": "#/$defs/A"}, {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}})
    assert faults(document, StrictLimits()) == ["a definition contains itself"]
    assert faults(document, StrictLimits(recursion=True)) == []


def nested(levels: int) -> dict[str, Any]:
    return {"type": ["object", "null"], "properties": {"a": nested(levels - 1)}} if levels else TEXT


@pytest.mark.parametrize(
    ("root", "limits", "count"),
    [
        ({"type": "object", "properties": dict.fromkeys("abc", TEXT)}, {"properties": 2}, "3 properties"),
        (nested(3), {"levels": 2}, "3 levels"),
        ({"type": "string", "enum": ["a", "b"]}, {"values": 1}, "2 listed values"),
        ({"type": "object", "properties": {"abc": {**TEXT, "enum": ["de"]}}}, {"characters": 4}, "5 characters"),
        ({"type": "string", "enum": ["aa", "bb"]}, {"long_list": (1, 3)}, "4 characters"),
    ],
)
def test_limits_are_kept(root: dict[str, Any], limits: Any, count: str) -> None:
    (fault,) = faults(ToolSchema(root, {}), StrictLimits(**limits))
    assert count in fault
    assert faults(ToolSchema(root, {}), StrictLimits()) == []


def test_the_number_of_reasons_is_bounded() -> None:
    assert (
        len(faults(ToolSchema({"type": "object", "properties": {str(n): {} for n in range(99)}}, {}), StrictLimits()))
        == 5
    )
