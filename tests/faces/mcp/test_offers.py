"""Entries of the prompts and resources of upstream servers."""

from __future__ import annotations

from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import McpServer, McpTool
from bespeak.faces.mcp.resources import Offers


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
