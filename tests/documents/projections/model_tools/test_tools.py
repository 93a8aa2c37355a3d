"""Tools of a model from the contract."""

from __future__ import annotations

import re
import runpy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.cases import rows
from tests.documents.openapi.notes_api import described
from tests.documents.openapi.reading import read
from tests.documents.projections.model_tools.provider_rules import GEMINI_NAME, NAME, broken
from tests.faces.mcp.tools import endpoint
from tests.process import ROOT

from bespeak.app.server.target import load_target
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import make_tools
from bespeak.documents.openapi.facade import make_facades
from bespeak.documents.projections.model_tools.tools import (
    ModelTool,
    RepeatedMemberError,
    Restorer,
    convert,
    definitions,
    make_model_tools,
)


def made(*endpoints: Any, style: str = "openai", **options: Any) -> list[ModelTool]:
    return make_model_tools(endpoints, style, **options)


@cache
def endpoints_of(source: str) -> list[Endpoint]:
    if source in ("hotel", "finance", "restaurant"):
        return list(load_target(str(ROOT / "examples" / source)).service.endpoints)
    large = runpy.run_path(str(ROOT / "bench" / "large_description.py"))["description"]
    description = described("https://notes.example") if source == "notes" else large(30, 40, dense=True)
    return [facade.endpoint for facade in make_facades(read(description)[0], load_bundled())[0]]


@pytest.mark.parametrize("source", ["hotel", "finance", "restaurant", "notes", "things"])
@pytest.mark.parametrize("style", ["openai", "anthropic", "gemini"])
def test_tools_of_written_and_imported_services_follow_the_rules(source: str, style: str) -> None:
    endpoints = endpoints_of(source)
    tools = made(*endpoints, style=style)
    assert len(tools) == len([one for one in endpoints if one.is_listed])
    for tool in tools:
        conversion = tool.conversion
        assert broken(conversion.schema, style, strict=conversion.strict) == [], tool.name
        assert (GEMINI_NAME if style == "gemini" else NAME).match(tool.name)


def test_names_order_and_descriptions_are_those_of_mcp() -> None:
    endpoints = [
        endpoint("QUERY", "/rooms", parameter_hints={"beds": ["for two"]}),
        endpoint("BOOK", "/rooms", impact="irreversible"),
        endpoint("FIND", "/rooms", internal=True),
        endpoint("FIND", "/rooms/{id}/beds"),
    ]
    mcp = make_tools(endpoints)
    assert [(tool.name, tool.description) for tool in made(*endpoints)] == [
        (name, tool.entry["description"]) for name, tool in mcp.items()
    ]


def test_a_tool_has_the_same_name_in_every_choice() -> None:
    first, second = endpoint("FIND", "/rooms"), endpoint("FIND", "/rooms/{id}")
    (tool,) = made(first, second, chosen=[second.key])
    assert tool.name == "find_rooms_by_id"


@given(st.lists(st.text("1-aé_", min_size=1, max_size=70), max_size=6))
def test_names_are_unique_and_taken_by_each_provider(declared: list[str]) -> None:
    endpoints = [endpoint("FIND", f"/r{number}", tool=name) for number, name in enumerate(declared)]
    for style, pattern in (("openai", NAME), ("anthropic", NAME), ("gemini", GEMINI_NAME)):
        names = [tool.name for tool in made(*endpoints, style=style)]
        assert len(set(names)) == len(declared)
        assert all(pattern.match(name) for name in names), names


def test_names_that_collide_after_a_change_stay_apart() -> None:
    long = "x" * 62
    declared = [f"1{long}", f"_1{long}"[:64], f"_1{long}"[:63], f"__1{long}"[:64], "1", "_1", "__1", "_11"]
    endpoints = [endpoint("FIND", f"/r{number}", tool=name) for number, name in enumerate(declared)]
    names = [tool.name for tool in made(*endpoints, style="gemini")]
    assert len(set(names)) == len(declared)
    assert all(GEMINI_NAME.match(name) for name in names)


def test_long_description_is_cut_for_the_provider_and_undeclared_arguments_break_the_contract() -> None:
    long = endpoint("FIND", "/rooms", intent="x" * 5_000)
    lengths = {style: len(made(long, style=style)[0].description) for style in ("openai", "anthropic")}
    assert lengths == {"openai": 1_024, "anthropic": 4_096}
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"a": {}}}))
    assert tool.validator.is_valid({"a": 1})
    assert not tool.validator.is_valid({"b": 1})
    (broken,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", "pattern": "("}))
    assert broken.validator is None


def optional(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(count)}}


@pytest.mark.parametrize(("count", "strict"), [(0, 20), (1, 20), (2, 12), (25, 0)])
def test_strict_tools_of_anthropic_stay_within_the_limits_of_a_request(count: int, strict: int) -> None:
    endpoints = [endpoint("FIND", f"/r{number}", input_schema=optional(count)) for number in range(30)]
    tools = made(*endpoints, style="anthropic")
    assert sum(tool.conversion.strict for tool in tools) == strict
    assert all(tool.conversion.reasons for tool in tools if not tool.conversion.strict)


def test_calls_that_cannot_be_undone_are_strict_before_others() -> None:
    endpoints = [endpoint("FIND", f"/a{number}") for number in range(25)]
    tools = made(*endpoints, endpoint("CANCEL", "/z", impact="irreversible"), style="anthropic")
    assert next(tool for tool in tools if tool.is_irreversible).conversion.strict
    assert re.fullmatch("the provider takes 20 strict tools .*", tools[-1].conversion.reasons[0])


SCHEMA = {
    "type": "object",
    "properties": {
        "beds": {"type": "integer", "minimum": 1},
        "when": {"$ref": "#/$defs/Stay", "description": "The nights."},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["beds"],
    "$defs": {
        "Stay": {"type": "object", "properties": {"from": {"type": "string", "format": "date"}}, "required": ["from"]}
    },
}
PLAIN = {"type": "object", "properties": {"any": {}}}


def listed(style: str, **options: Any) -> list[dict[str, Any]]:
    endpoints = [endpoint("FIND", "/rooms", input_schema=SCHEMA), endpoint("QUERY", "/all", input_schema=PLAIN)]
    return definitions(make_model_tools(endpoints, style), style, **options)


def test_tools_for_chat_completions() -> None:
    from openai.lib._pydantic import _ensure_strict_json_schema
    from openai.types.chat import ChatCompletionFunctionToolParam

    tools = listed("openai")
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(tools, strict=True)
    assert [tool["function"]["strict"] for tool in tools] == [True, False]
    strict = tools[0]["function"]["parameters"]
    assert _ensure_strict_json_schema(strict, path=(), root=strict) == strict


def test_tools_for_responses() -> None:
    from openai.types.responses import FunctionToolParam

    tools = listed("openai-responses")
    TypeAdapter(list[FunctionToolParam]).validate_python(tools, strict=True)
    assert tools[0]["parameters"] == listed("openai")[0]["function"]["parameters"]


def test_tools_for_anthropic() -> None:
    from anthropic import transform_schema
    from anthropic.types import ToolParam

    tools = listed("anthropic")
    TypeAdapter(list[ToolParam]).validate_python(tools, strict=True)
    assert [tool.get("strict") for tool in tools] == [True, None]
    assert transform_schema(tools[0]["input_schema"]) == tools[0]["input_schema"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package itself
def test_tools_for_gemini() -> None:
    from google.genai import types

    tools = listed("gemini")
    found = types.GenerateContentConfig(tools=tools).tools
    assert found is not None
    (tool,) = found
    assert isinstance(tool, types.Tool)
    assert [one.name for one in tool.function_declarations or ()] == ["find_rooms", "query_all"]
    for one in tools[0]["functionDeclarations"]:
        types.FunctionDeclaration.model_validate(one)


@pytest.mark.parametrize("style", ["openai-responses", "anthropic"])
def test_deferred_tools_come_with_the_providers_search(style: str) -> None:
    from anthropic.types import ToolUnionParam
    from openai.types.responses import ToolParam

    tools = listed(style, defer=True)
    union: Any = ToolParam if style == "openai-responses" else ToolUnionParam
    TypeAdapter(list[union]).validate_python(tools, strict=True)
    assert "search" in tools[0]["type"]
    assert all(tool["defer_loading"] for tool in tools[1:])


COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
}


def restored(part: dict[str, Any], value: Any, style: str = "openai", *, required: bool = True) -> Any:
    schema = {"type": "object", "properties": {"a": part}, "$defs": {"T": TREE}}
    conversion = convert({**schema, "required": ["a"]} if required else schema, style)
    return Restorer(conversion.document).restore({"a": value})


@rows(
    "part, given, expected",
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
