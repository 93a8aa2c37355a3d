"""Prompts: one for each namespace, in the words of the contract, of bounded length."""

from __future__ import annotations

from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.handler import McpServer, McpTool
from bespeak.contract.mcp_tool import make_tools
from bespeak.faces.mcp.resources import Offers, Prompt, make_prompts

BOOK = endpoint(
    "BOOK",
    "/rooms/{room_id}",
    impact="irreversible",
    is_idempotent=False,
    intent="Reserve a room.",
    outcome="A reservation exists.",
    input_schema={"type": "object", "properties": {"room_id": {}}, "required": ["room_id"]},
)


def prompts(*endpoints: Endpoint) -> dict[str, Prompt]:
    return make_prompts("Acme", make_tools(endpoints).values())


def test_there_is_one_prompt_for_each_namespace() -> None:
    found = prompts(
        BOOK, endpoint("FIND", "/rooms"), endpoint("LIST", "/floors"), endpoint("FIND", "/x", namespace="b")
    )
    assert list(found) == ["b", "floors", "rooms"]
    assert found["rooms"].entry["arguments"] == [
        {"name": "task", "description": "What is to be done, in your words.", "required": False}
    ]


def test_tools_are_explained_by_what_they_change() -> None:
    text = prompts(BOOK, endpoint("FIND", "/rooms"))["rooms"].message("")
    read, booked = text.index("These only read:"), text.index("These cannot be undone:")
    assert read < text.index("- find_rooms: Find rooms. Outcome: The rooms are returned.") < booked
    line = text[text.index("- book_rooms") :].splitlines()[0]
    assert line == (
        "- book_rooms: Reserve a room. Outcome: A reservation exists. "
        "It cannot be undone, so a person confirms it before it runs. Requires room_id."
    )


def test_the_task_comes_last() -> None:
    assert prompts(BOOK)["rooms"].message("Book 12.").endswith("\n\nTask: Book 12.")


def test_a_deprecated_tool_comes_after_others_and_names_its_successor() -> None:
    old = endpoint("AUDIT", "/rooms", deprecated=Deprecation(deprecated_in="2.0", successor_method="FIND"))
    text = prompts(old, endpoint("FIND", "/rooms"))["rooms"].message("")
    assert text.index("- find_rooms") < text.index("- audit_rooms")
    assert "Use find_rooms instead." in text


def test_a_tool_of_unknown_impact_counts_as_irreversible() -> None:
    text = prompts(endpoint("SEND", "/mail", impact=""))["mail"].message("")
    assert "These cannot be undone:\n- send_mail" in text


def test_internal_endpoints_are_in_no_prompt() -> None:
    assert prompts(endpoint("FIND", "/ledger", internal=True)) == {}


def test_a_long_text_is_cut_and_says_so() -> None:
    many = [endpoint("FIND", f"/rooms/n{number}", tool=f"find_{number}", intent="x" * 900) for number in range(100)]
    text = prompts(*many)["rooms"].message("")
    assert len(text) < 12_100
    shown = text.count("\n- find_")
    assert f"And {100 - shown} more: see the list of tools." in text
    assert max(map(len, text.splitlines())) <= 400


def offer(path: str, *, impact: str = "informational", **named: str) -> Endpoint:
    return endpoint(
        "FETCH", path, handler=McpTool(mcp=McpServer(command="notes", **named)), impact=impact, description="It is."
    )


def test_first_of_a_name_counts_and_taken_names_are_left_out() -> None:
    first, second = offer("/prompts/a", prompt="greet"), offer("/prompts/b", prompt="greet")
    found = Offers([first, second, offer("/resources/a", resource="note://1")])
    assert found.prompts == {"greet": first}
    (entry,) = found.prompt_entries(())
    assert (entry["name"], entry["description"], entry["arguments"]) == ("greet", "It is.", [])
    assert list(found.prompt_entries({"greet"})) == []
    assert found.resource_entries["note://1"]["name"] == "a"


def test_endpoint_that_changes_something_is_not_offered() -> None:
    found = Offers([offer("/prompts/a", impact="irreversible", prompt="greet"), offer("/tools/a", tool="greet")])
    assert (found.prompts, found.resources) == ({}, {})
