"""Names of tools are split into the service and the rest."""

from __future__ import annotations

import pytest

from bespeak.documents.mcp.candidates import split_names


@pytest.mark.parametrize(
    ("names", "title", "parts"),
    [
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
    ],
)  # fmt: skip
def test_service_is_told_from_action_and_thing(names: list[str], title: str, parts: list[str]) -> None:
    assert [f"{name.namespace} {name.bare}" for name in split_names(names, title)] == parts
