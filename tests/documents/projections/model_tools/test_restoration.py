"""Arguments of a model, converted back."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.providers import convert
from bespeak.documents.projections.model_tools.tools import RepeatedMemberError, Restorer

COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
}


def restored(part: dict[str, Any], value: Any, style: str = "openai", *, required: bool = True) -> Any:
    schema = {"type": "object", "properties": {"a": part}, "$defs": {"T": TREE}}
    conversion = convert({**schema, "required": ["a"]} if required else schema, style)
    return Restorer(conversion.document).restore({"a": value})


@pytest.mark.parametrize(
    ("part", "given", "expected"),
    [
        (COUNTS, [{"key": "x", "value": 1}], {"x": 1}),
        (COUNTS, [], {}),
        (COUNTS, {"x": 1}, {"x": 1}),  # written as the contract has it
        (COUNTS, [{"key": 1, "value": 1}], [{"key": 1, "value": 1}]),  # not pairs: the contract judges it
        ({"$ref": "#/$defs/T"}, {"name": "x", "below": [{"name": None, "below": None}]}, {"name": "x", "below": [{}]}),
        ({"anyOf": [COUNTS, {"type": "string"}]}, [{"key": "x", "value": 1}], {"x": 1}),
        ({"anyOf": [COUNTS, {"type": "string"}]}, [{"key": "x", "value": "no"}], {"x": "no"}),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
            {"b": None, "other_members": [{"key": "c", "value": 1}]},
            {"c": 1},
        ),
    ],
)
def test_a_value_is_what_the_contract_describes(part: dict[str, Any], given: Any, expected: Any) -> None:
    assert restored(part, given) == {"a": expected}


@pytest.mark.parametrize("style", ["openai", "anthropic", "gemini"])
def test_null_for_an_optional_argument_leaves_it_out(style: str) -> None:
    conversion = convert({"type": "object", "properties": {"a": {"type": "string"}}}, style, strict=False)
    assert Restorer(conversion.document).restore({"a": None}) == {}


def test_arguments_get_their_names_back_and_a_wrapped_input_its_place() -> None:
    renamed = convert({"type": "object", "properties": {"$top": {"type": "integer"}}}, "anthropic")
    assert Restorer(renamed.document).restore({"top": 3}) == {"$top": 3}
    union = {"anyOf": [{"type": "object", "properties": {n: {"type": "string"}}, "required": [n]} for n in "ab"]}
    wrapped = convert(union, "openai")
    assert Restorer(wrapped.document).restore({"input": {"a": "x"}}) == {"a": "x"}
    assert Restorer(wrapped.document).restore({"a": "x"}) == {"a": "x"}


def test_a_member_that_is_given_twice_is_refused() -> None:
    pair = {"key": "x", "value": 1}
    with pytest.raises(RepeatedMemberError, match="'x' is given twice"):
        restored(COUNTS, [pair, pair])
    part = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}
    with pytest.raises(RepeatedMemberError, match="'x' is given twice"):
        restored(part, {"x": 1, "other_members": [pair]})


@pytest.mark.parametrize("value", [None, 3, "x", [1, [2]], {"b": [{}]}])
def test_a_value_that_does_not_follow_the_schema_is_left_to_the_contract(value: Any) -> None:
    assert restored({"anyOf": [COUNTS, {"type": "array", "items": COUNTS}]}, value, "anthropic") == {"a": value}
