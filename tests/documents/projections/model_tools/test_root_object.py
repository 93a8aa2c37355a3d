"""Arguments: an object with usable names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bespeak.documents.projections.model_tools.passes import with_root_object
from bespeak.documents.projections.model_tools.schema import RENAMED, WRAPPED, ToolSchema

NAMES = re.compile(r"[A-Za-z0-9_.-]{1,64}")
IDENTIFIERS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def root(node: dict[str, Any], names: re.Pattern[str] = NAMES, **definitions: Any) -> dict[str, Any]:
    return with_root_object(ToolSchema(node, definitions), names).root


@pytest.mark.parametrize("node", [{}, {"type": "object"}, {"$ref": "#/$defs/A"}, {"description": "x", "anyOf": [{}]}])
def test_a_root_that_declares_nothing_takes_no_arguments(node: dict[str, Any]) -> None:
    made = root(node, A={"type": "object"})
    assert (made["type"], made["properties"], made["additionalProperties"]) == ("object", {}, False)


def test_undeclared_arguments_are_taken_if_the_contract_says_so() -> None:
    assert root({"type": "object", "additionalProperties": {}})["additionalProperties"] == {}
    assert "additionalProperties" not in root({"type": "object", "patternProperties": {"^x": {}}})


@pytest.mark.parametrize("node", [{"anyOf": [{"type": "object"}, {"type": "object"}]}, {"type": "string"}])
def test_a_union_is_wrapped(node: dict[str, Any]) -> None:
    made = root(node)
    assert made["properties"] == {"input": node}
    assert (made["required"], made[WRAPPED]) == (["input"], "input")


def test_arguments_get_names_that_the_provider_takes() -> None:
    parts = {"$top": {}, "top": {}, "filter[name]": {}, "größe": {}, "9": {}, "x" * 70: {}, "": {}, "a.b": {}}
    made = root({"type": "object", "properties": parts, "required": ["$top", "top"]})
    assert list(made["properties"]) == ["top_2", "top", "filter_name", "gr_e", "9", f"{'x' * 64}", "arg", "a.b"]
    assert made["required"] == ["top_2", "top"]
    assert [name for _, name in made[RENAMED]] == ["$top", "filter[name]", "größe", "x" * 70, ""]
    renamed = root({"type": "object", "properties": {"9": {}, "a.b": {}, "a_b": {}}}, IDENTIFIERS)
    assert list(renamed["properties"]) == ["arg_9", "a_b_2", "a_b"]


def test_names_that_are_cut_to_the_same_text_stay_apart() -> None:
    made = root({"type": "object", "properties": {f"{'x' * 70}{number}": {} for number in range(120)}})
    assert len(made["properties"]) == 120
    assert all(NAMES.fullmatch(name) for name in made["properties"])
