"""What callers ask for of an output."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.faces.mcp.results import Shape, read_shape, shape_in
from bespeak.protocol.exchange.refusal import Outcome

ROOM = {"type": "object", "properties": {"id": {"type": "string"}, "note": {"type": "string"}}, "required": ["id"]}
OUTPUT = {"type": "object", "properties": {"rooms": {"type": "array", "items": ROOM}}, "required": ["rooms"]}


def tool(**changes: Any) -> Tool:
    return next(iter(make_tools([endpoint("FIND", "/rooms", output_schema=OUTPUT, **changes)]).values()))


def shaped(asked: dict[str, Any], output: Any) -> Any:
    found = read_shape(tool(), asked)
    assert isinstance(found, Shape)
    return found.apply(tool(), output)


@pytest.mark.parametrize("fields", [["rooms.id"], "rooms.id"])
def test_members_are_selected(fields: Any) -> None:
    output = {"rooms": [{"id": "1", "note": "a"}], "more": 1}
    assert shaped({"fields": fields}, output) == {"rooms": [{"id": "1"}]}


def test_empty_members_are_left_out() -> None:
    assert shaped({"compact": True}, {"rooms": [{"id": "", "note": ""}]}) == {"rooms": [{"id": ""}]}


def test_nothing_is_asked_for() -> None:
    assert read_shape(tool(), {"name": "find_rooms"}) is None
    assert shape_in({"bespeak/fields": "a", "bespeak/compact": True, "other": 1}) == {"fields": "a", "compact": True}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"fields": ["rooms.price"]}, "unknown-fields"),
        ({"fields": 7}, "invalid-token-hint"),
        ({"fields": [7]}, "invalid-token-hint"),
        ({"fields": [""]}, "invalid-token-hint"),
        ({"compact": "yes"}, "invalid-token-hint"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(asked: dict[str, Any], code: str) -> None:
    found = read_shape(tool(), asked)
    assert isinstance(found, Outcome)
    assert found.error["code"] == code


def test_an_argument_of_the_same_name_does_not_hide_the_wish() -> None:
    other = tool(input_schema={"type": "object", "properties": {"fields": {"type": "string"}}})
    assert isinstance(read_shape(other, {"fields": ["rooms.id"]}), Shape)
