"""The search that stands for many tools."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import make_tools
from bespeak.faces.mcp.catalog import CapabilitySearch, Wanted, join_within
from bespeak.protocol.exchange.refusal import Outcome

ROOM = {"type": "object", "properties": {"room_id": {"type": "string"}}}
ENDPOINTS = [
    endpoint("FIND", "/rooms", intent="Find rooms that are free."),
    endpoint("BOOK", "/rooms", intent="Reserve a room.", impact="irreversible", is_idempotent=False, input_schema=ROOM),
    endpoint("LIST", "/invoices", intent="List the invoices of a guest."),
]


def search(*more: Any) -> CapabilitySearch:
    return CapabilitySearch(make_tools([*ENDPOINTS, *more]))


def find(**arguments: Any) -> Any:
    return search().find(arguments).output


def test_a_result_has_all_that_a_call_needs() -> None:
    found = find(query="reserve a room", limit=1)
    assert found["matches"] == 3
    assert found["capabilities"] == [
        {
            "name": "book_rooms",
            "description": "Reserve a room.\nOutcome: The rooms are returned.\n"
            "It cannot be undone, so a person confirms it before it runs.",
            "inputSchema": ROOM,
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": False,
            },
            "impact": "irreversible",
        }
    ]


def test_other_words_for_a_thing_find_it() -> None:
    assert [one["name"] for one in find(query="show me the bills")["capabilities"]] == ["list_invoices"]


def test_the_name_of_a_tool_comes_first() -> None:
    assert find(query="find_rooms")["capabilities"][0]["name"] == "find_rooms"


def test_without_a_match_the_namespaces_are_named() -> None:
    found = find(query="weather")
    assert (found["capabilities"], found["namespaces"]) == ([], ["rooms", "invoices"])
    assert "namespaces" in found["advice"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": "x" * 1001}, {"query": "a", "limit": 0}, {"query": "a", "limit": 21}, {"q": "a"}],
)
def test_arguments_of_a_search_are_checked(arguments: dict[str, Any]) -> None:
    assert search().find(arguments).error["code"] == "input-validation-failed"


def test_a_call_names_a_tool_and_its_arguments() -> None:
    wanted = search().unwrap({"name": "book_rooms", "arguments": {"room_id": "12"}})
    assert isinstance(wanted, Wanted)
    assert (wanted.tool.name, wanted.arguments) == ("book_rooms", {"room_id": "12"})
    bare = search().unwrap({"name": "find_rooms"})
    assert isinstance(bare, Wanted)
    assert bare.arguments == {}


def test_an_unknown_capability_is_refused_with_near_ones() -> None:
    found = search().unwrap({"name": "book_room"})
    assert isinstance(found, Outcome)
    assert found.error["code"] == "capability-not-found"
    assert "did you mean book_rooms?" in found.error["message"]
    assert "find_capability" in found.error["remedy"]


@pytest.mark.parametrize(
    "arguments", [{}, {"name": 1}, {"name": "book_rooms", "arguments": "{}"}, {"name": "book_rooms", "confirm": True}]
)
def test_arguments_of_a_call_are_checked(arguments: dict[str, Any]) -> None:
    found = search().unwrap(arguments)
    assert isinstance(found, Outcome)
    assert found.error["code"] == "input-validation-failed"


def test_a_call_is_annotated_as_the_worst_that_it_can_do() -> None:
    found = search()
    assert found.caller.entry["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert found.finder.entry["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert "rooms, invoices" in found.finder.entry["description"]


def test_a_tool_of_the_service_keeps_its_name() -> None:
    own = endpoint("FIND", "/capability")
    assert search(own).finder.name == "find_capability_"


def test_names_are_joined_within_a_length() -> None:
    assert join_within(["rooms", "beds"], 13) == "rooms, beds"
    assert join_within(["rooms", "beds", "halls"], 13) == "rooms, beds and 1 more"
