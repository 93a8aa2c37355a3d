"""Tools become candidates, with every sign that a call changes something."""

from __future__ import annotations

from typing import Any

from tests.cases import rows

from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.mcp.facade import as_candidates, goal, split_names
from bespeak.documents.mcp.tools import ListedTool, ToolList


def candidates(*tools: ListedTool) -> list[Candidate]:
    return [candidate for candidate, _ in as_candidates(ToolList(tools=tools))]


def signs(description: str = "", **properties: Any) -> tuple[str, ...]:
    schema = {"type": "object", "properties": properties}
    return candidates(ListedTool(name="do_it", description=description, input_schema=schema))[0].signs


@rows(
    "description, properties, sign",
    ("", {"operation": {"enum": ["list", "delete"]}}, "its field 'operation' may be 'delete'"),
    ("", {"subCommand": {"enum": ["status", "restart"]}}, "its field 'subCommand' may be 'restart'"),
    ("Convert it. Saves the file.", {}, "its description says 'Saves the file'"),
    ("Convert it. The old file is removed.", {}, "its description says 'is removed'"),
    ("", {"keep": {"description": "Whether to delete the source"}}, "its field 'keep' says 'Whether to delete'"),
)
def test_sign_of_a_change_is_told(description: str, properties: dict[str, Any], sign: str) -> None:
    assert signs(description, **properties) == (sign,)


def test_reading_tool_shows_no_change_and_its_name_is_without_its_service() -> None:
    assert signs("", language_code={}, format={"enum": ["delete", "json"]}, operation={"enum": ["list", "get"]}) == ()
    assert signs("", broken=7) == ()
    first, second = candidates(ListedTool(name="jira_get_issue"), ListedTool(name="jira_add_label"))
    assert (first.name, first.full_name, first.origin, first.tags, first.service) == (
        *("get_issue", "jira_get_issue", "jira_get_issue", ("jira",), ""),
    )
    assert second.name == "add_label"


def test_services_begin_the_paths_and_neighbours_and_outputs_tell_what_a_tool_does() -> None:
    names = ("jira_get_issue", "jira_add_label", "wiki_get_page", "wiki_add_page")
    found = candidates(*(ListedTool(name=name) for name in names))
    assert [one.service for one in found] == ["jira", "jira", "wiki", "wiki"]
    names = ("create_note", "delete_note", "update_page", "get_page", "send_mail", "lock_door", "unlock_door")
    found = {one.name: one for one in candidates(*(ListedTool(name=name) for name in names))}
    assert [name for name in names if found[name].is_undone] == ["create_note", "lock_door", "unlock_door"]
    assert [name for name in names if found[name].has_readable_state] == ["update_page", "get_page"]
    rows = {"type": "array"}
    schemas = (rows, {"type": "object", "properties": {"result": rows}}, {"type": "object"}, None)
    found = candidates(*(ListedTool(name=f"a{at}", output_schema=one) for at, one in enumerate(schemas)))
    assert [one.returns_list for one in found] == [True, True, False, False]


def test_arithmetic_on_numbers_is_not_a_change() -> None:
    def named(name: str, **types: str) -> tuple[str, str]:
        schema = {"properties": {field: {"type": kind} for field, kind in types.items()}}
        [found] = candidates(ListedTool(name=name, description="Add it.", input_schema=schema))
        return found.name, found.summary

    assert named("add", a="integer", b="number") == ("calculate_sum", "Calculate the sum of the numbers")
    assert named("add", a="integer", b="string") == ("add", "Add it")
    assert named("add") == ("add", "Add it")


@rows("names, title, parts",
        (["git_status", "git_create_branch"], "", ["git status", "git create_branch"]),
        (["jira_get_issue", "jira_add_label", "wiki_get_page", "wiki_list_pages"], "",
         ["jira get_issue", "jira add_label", "wiki get_page", "wiki list_pages"]),
        (["slack_list_x", "slack_post_y"], "Slack MCP Server", ["slack list_x", "slack post_y"]),
        (["API-retrieve-a-page", "API-post-search"], "", [" retrieve_page", " post_search"]),
        (["search_users", "search_code"], "", [" search_users", " search_code"]),
        (["user_create", "user_delete"], "user server", [" user_create", " user_delete"]),
        (["disk-schema", "disk-indexes", "find"], "", [" disk_schema", " disk_indexes", " find"]),
        (["screencast_start", "screencast_stop", "click"], "", [" screencast_start", " screencast_stop", " click"]),
        (["Acme-getUser", "Acme-deleteUser"], "", ["acme get_user", "acme delete_user"]),
        (["orders.list", "orders.create"], "", [" orders_list", " orders_create"]),
        (["batch_create_a", "batch_create_b"], "", [" batch_create_a", " batch_create_b"]),
        (["get"], "", [" get"]),
        (["Löschen", "検索"], "", [" loeschen", " "]),
        ([], "", []),
)  # fmt: skip
def test_service_is_told_from_action_and_thing(names: list[str], title: str, parts: list[str]) -> None:
    assert [f"{name.namespace} {name.bare}" for name in split_names(names, title)] == parts


@rows(
    "description, sentence",
    ("Get recent messages from a channel.", "Get recent messages from a channel"),
    ("Notion | Retrieve a user\nError Responses:\n400: Bad request", "Retrieve a user"),
    ("🎯 Purpose:\n  1. Retrieves a list of objects.\n📦 Returns:\n  1. Objects.", "Retrieves a list of objects"),
    ("🛡️ Guardrails:\n 1. This tool modifies data.\n🎯 Purpose:\n 1. Creates objects.", "Creates objects"),
    ("## Weather\n\n- Shows the weather of a city.", "Shows the weather of a city"),
    ("Weather of a city", "Weather of a city"),
    ("", ""),
)
def test_goal_is_the_first_sentence_without_headings_and_labels(description: str, sentence: str) -> None:
    assert goal(description) == sentence
