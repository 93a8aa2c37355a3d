"""Tools of a model from the contract."""

from __future__ import annotations

import re
import runpy
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from bespeak.documents.projections.model_tools.tools import ModelTool, make_model_tools


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


def test_a_description_is_cut_where_the_provider_refuses_longer_ones() -> None:
    long = endpoint("FIND", "/rooms", intent="x" * 5_000)
    assert {style: len(made(long, style=style)[0].description) for style in ("openai", "anthropic")} == {
        "openai": 1_024,
        "anthropic": 4_096,
    }


def test_undeclared_arguments_break_the_contract() -> None:
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"a": {}}}))
    assert tool.validator is not None
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
