"""The MCP server card keeps the rules of SEP-2127."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.discovery import MCP_VERSIONS, project_server_card

FIND = make_endpoint("FIND", "/rooms", echo)


def card(*modes: str, name: str = "Acme Rooms", issuer: str | None = None, **fields: Any) -> dict[str, Any]:
    identity = ServerIdentity(server_id="rooms.acme.example", operator="Acme", contact="", name=name)
    settings = HttpSettings(url="https://api.acme.example/v1")
    service = Service(identity=identity, **fields)
    return project_server_card(service, [FIND], settings, modes or ("open",), version="v-1", issuer=issuer)


def test_a_card_says_where_and_how_to_connect_and_lists_no_tools() -> None:
    found = card("mtls", description="Rooms of all hotels.")
    assert found == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.acme.rooms/acme-rooms",
        "title": "Acme Rooms",
        "description": "Rooms of all hotels.",
        "version": "v-1",
        "remotes": [
            {
                "type": "streamable-http",
                "url": "https://api.acme.example/v1/mcp",
                "supportedProtocolVersions": list(MCP_VERSIONS),
            }
        ],
    }


def test_the_revisions_are_those_of_the_sdk() -> None:
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    assert (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS) == MCP_VERSIONS


@pytest.mark.parametrize("name", ["", "Ärzte & Söhne " * 20, "日本", "x"])
def test_names_and_texts_keep_their_limits(name: str) -> None:
    found = card(name=name, description="text " * 90)
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", found["name"])
    assert 3 <= len(found["name"]) <= 200
    assert 1 <= len(found["title"]) <= 100
    assert 1 <= len(found["description"]) <= 100


@pytest.mark.parametrize(
    ("modes", "issuer", "expected"),
    [
        (("open",), None, {"Agent-ID": False, "Authority-Scope": False}),
        (("token",), "keys.acme", {"Authorization": True}),
        (("token", "mtls"), None, {"Authorization": False}),
        (("token",), "https://login.acme.example", {}),
        (("mtls",), None, {}),
    ],
)
def test_headers_that_a_user_supplies_are_named(modes: tuple[str, ...], issuer: str | None, expected: Any) -> None:
    [remote] = card(*modes, issuer=issuer)["remotes"]
    assert {one["name"]: one["isRequired"] for one in remote.get("headers", [])} == expected
    assert all(one.get("isSecret", False) == (one["name"] == "Authorization") for one in remote.get("headers", []))
