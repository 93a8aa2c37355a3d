"""What a server lists."""

from __future__ import annotations

from typing import Any

from tests.faces.mcp.tools import endpoint

from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.mcp.catalog import Catalog
from bespeak.protocol.exchange.refusal import Outcome

ENDPOINTS = [endpoint(method, path) for path in ("/rooms", "/beds/{id}") for method in ("FIND", "UPDATE")]


def catalog(**settings: Any) -> Catalog:
    return Catalog(ENDPOINTS, McpSettings(**settings))


def names(found: Catalog) -> list[str]:
    return [entry["name"] for entry in found.entries]


def test_tools_are_listed_up_to_the_limit_and_searched_beyond_it() -> None:
    assert names(catalog(tools_listed=4)) == ["find_beds", "find_rooms", "update_beds", "update_rooms"]
    assert names(catalog(tools_listed=3)) == ["call_capability", "find_capability"]
    assert len(catalog(tools_listed=3).tools) == 4


def test_any_number_of_tools_can_be_listed() -> None:
    many = [endpoint("FIND", f"/rooms-{number}") for number in range(60)]
    assert len(Catalog(many, McpSettings()).entries) == 2
    assert len(Catalog(many, McpSettings(tools_listed=0)).entries) == 60


def test_only_the_tools_of_a_toolset_exist() -> None:
    found = catalog(toolsets=("beds",), tools_listed=3)
    assert names(found) == ["find_beds", "update_beds"]
    assert "find_rooms" not in found.tools
    assert isinstance(found.search.unwrap({"name": "find_rooms"}), Outcome)


def test_a_toolset_that_has_no_endpoint_is_missing() -> None:
    found = catalog(toolsets=("beds", "room"))
    assert (found.missing, found.namespaces) == (["room"], ["beds", "rooms"])


def test_instructions_name_the_namespaces_if_tools_are_searched() -> None:
    assert "beds" not in catalog().instructions("Hotel")
    text = catalog(tools_listed=1).instructions("Hotel")
    assert "Hotel has 4 capabilities. Find them with find_capability" in text
    assert "beds (find, update), rooms (find, update)" in text


def test_instructions_are_bounded() -> None:
    many = [endpoint("FIND", f"/a-long-name-of-a-collection-of-rooms-{number}") for number in range(2000)]
    text = Catalog(many, McpSettings()).instructions("Hotel")
    assert len(text) < 2_000
    assert " more." in text
