"""What a server lists."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from tests.cases import rows
from tests.faces.mcp.tools import endpoint

from bespeak.app.server.mcp_stdio import ClientBackend
from bespeak.contract.mcp_tool import make_tools
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.mcp.catalog import Backend, CapabilitySearch, ToolCatalog, Wanted, join_within
from bespeak.protocol.exchange.refusal import Outcome

ENDPOINTS = [endpoint(method, path) for path in ("/rooms", "/beds/{id}") for method in ("FIND", "UPDATE")]
ROOM = {"type": "object", "properties": {"room_id": {"type": "string"}}}
METHODS = sorted(name for name, value in vars(Backend).items() if inspect.isfunction(value) and name[0] != "_")


def catalog(**settings: Any) -> ToolCatalog:
    return ToolCatalog(ENDPOINTS, McpSettings(**settings))


def names(found: ToolCatalog) -> list[str]:
    return [entry["name"] for entry in found.entries]


def test_tools_are_those_of_the_toolset_listed_up_to_the_limit_and_searched_beyond_it() -> None:
    assert names(catalog(tools_listed=4)) == ["find_beds", "find_rooms", "update_beds", "update_rooms"]
    assert names(catalog(tools_listed=3)) == ["call_capability", "find_capability"]
    assert len(catalog(tools_listed=3).tools) == 4
    many = [endpoint("FIND", f"/rooms-{number}") for number in range(60)]
    assert len(ToolCatalog(many, McpSettings()).entries) == 2
    assert len(ToolCatalog(many, McpSettings(tools_listed=0)).entries) == 60
    found = catalog(toolsets=("beds",), tools_listed=3)
    assert names(found) == ["find_beds", "update_beds"]
    assert "find_rooms" not in found.tools
    assert isinstance(found.search.unwrap({"name": "find_rooms"}), Outcome)
    found = catalog(toolsets=("beds", "room"))
    assert (found.missing, found.namespaces) == (["room"], ["beds", "rooms"])


def test_instructions_name_the_namespaces_of_searched_tools_within_a_length() -> None:
    assert "beds" not in catalog().instructions("Hotel")
    text = catalog(tools_listed=1).instructions("Hotel")
    assert "Hotel has 4 capabilities. Find them with find_capability" in text
    assert "beds (find, update), rooms (find, update)" in text
    many = [endpoint("FIND", f"/a-long-name-of-a-collection-of-rooms-{number}") for number in range(2000)]
    text = ToolCatalog(many, McpSettings()).instructions("Hotel")
    assert len(text) < 2_000
    assert " more." in text
    assert join_within(["rooms", "beds"], 13) == "rooms, beds"
    assert join_within(["rooms", "beds", "halls"], 13) == "rooms, beds and 1 more"


CAPABILITY_SEARCH_ENDPOINTS = [
    endpoint("FIND", "/rooms", intent="Find rooms that are free."),
    endpoint("BOOK", "/rooms", intent="Reserve a room.", impact="irreversible", is_idempotent=False, input_schema=ROOM),
    endpoint("LIST", "/invoices", intent="List the invoices of a guest."),
]


def search(*more: Any) -> CapabilitySearch:
    return CapabilitySearch(make_tools([*CAPABILITY_SEARCH_ENDPOINTS, *more]))


def find(**arguments: Any) -> Any:
    return search().find(arguments).output


def test_a_search_has_all_that_a_call_needs_and_knows_other_words() -> None:
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
    assert [one["name"] for one in find(query="show me the bills")["capabilities"]] == ["list_invoices"]
    assert find(query="find_rooms")["capabilities"][0]["name"] == "find_rooms"
    found = find(query="weather")
    assert (found["capabilities"], found["namespaces"]) == ([], ["rooms", "invoices"])
    assert "namespaces" in found["advice"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": "x" * 1001}, {"query": "a", "limit": 0}, {"query": "a", "limit": 21}, {"q": "a"}],
)
def test_arguments_of_a_search_are_checked(arguments: dict[str, Any]) -> None:
    assert search().find(arguments).error["code"] == "input-validation-failed"


def test_calls_name_a_tool_and_are_annotated_as_the_worst() -> None:
    wanted = search().unwrap({"name": "book_rooms", "arguments": {"room_id": "12"}})
    assert isinstance(wanted, Wanted)
    assert (wanted.tool.name, wanted.arguments) == ("book_rooms", {"room_id": "12"})
    bare = search().unwrap({"name": "find_rooms"})
    assert isinstance(bare, Wanted)
    assert bare.arguments == {}
    found = search().unwrap({"name": "book_room"})
    assert isinstance(found, Outcome)
    assert found.error["code"] == "capability-not-found"
    assert "did you mean book_rooms?" in found.error["message"]
    assert "find_capability" in found.error["remedy"]
    found = search()
    expected = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
    assert found.caller.entry["annotations"] == expected
    assert found.finder.entry["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert "rooms, invoices" in found.finder.entry["description"]
    own = endpoint("FIND", "/capability")
    assert search(own).finder.name == "find_capability_"


@rows("arguments", {}, {"name": 1}, {"name": "book_rooms", "arguments": "{}"}, {"name": "book_rooms", "confirm": True})
def test_arguments_of_a_call_are_checked(arguments: dict[str, Any]) -> None:
    found = search().unwrap(arguments)
    assert isinstance(found, Outcome)
    assert found.error["code"] == "input-validation-failed"


@pytest.mark.parametrize("backend", [ClientBackend, DispatchBackend])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_called_as_the_boundary_says(backend: type, method: str) -> None:
    asked, offered = inspect.signature(getattr(Backend, method)), inspect.signature(getattr(backend, method))
    assert offered.parameters.keys() == asked.parameters.keys()
    assert inspect.iscoroutinefunction(getattr(backend, method)) is inspect.iscoroutinefunction(
        getattr(Backend, method)
    )
