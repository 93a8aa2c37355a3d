"""The AI catalog and the older catalog of MCP servers."""

from __future__ import annotations

import re

from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.projections.discovery import Artifact, project_catalog, project_mcp_catalog

URL = "https://rooms.acme.example"
CARD = Artifact("mcp", "application/mcp-server-card+json", f"{URL}/mcp/server-card", "how MCP clients connect")
AGTP = Artifact("agtp", "application/vnd.agtp.manifest+json", "agtp://rooms.acme.example", "the manifest")


def service(**fields: str) -> Service:
    named = {"operator": "Acme", "name": "Acme Rooms", **fields}
    return Service(identity=ServerIdentity(server_id="rooms.acme.example", contact="", **named))


def test_each_document_is_an_entry_with_its_own_type_and_identifier() -> None:
    found = project_catalog(service(), URL, [CARD, AGTP], updated="2026-11-16T00:00:00Z")
    assert found["specVersion"] == "1.0"
    assert found["host"] == {"displayName": "Acme", "identifier": "rooms.acme.example"}
    assert found["entries"][0] == {
        "identifier": "urn:air:rooms.acme.example:mcp:acme-rooms",
        "displayName": "Acme Rooms",
        "type": "application/mcp-server-card+json",
        "url": "https://rooms.acme.example/mcp/server-card",
        "description": "how MCP clients connect",
        "tags": ["mcp"],
        "updatedAt": "2026-11-16T00:00:00Z",
    }
    identifiers = [entry["identifier"] for entry in found["entries"]]
    assert len(set(identifiers)) == 2
    assert all(re.fullmatch(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+", one) for one in identifiers)


def test_a_service_without_operator_is_its_own_host() -> None:
    assert project_catalog(service(operator="unspecified"), URL, [], updated="")["host"]["displayName"] == "Acme Rooms"


def test_the_older_catalog_has_the_mcp_server_alone() -> None:
    assert project_mcp_catalog(service(), URL, CARD) == {
        "specVersion": "draft",
        "entries": [
            {
                "identifier": "urn:air:rooms.acme.example:mcp:acme-rooms",
                "displayName": "Acme Rooms",
                "type": "application/mcp-server-card+json",
                "url": "https://rooms.acme.example/mcp/server-card",
            }
        ],
    }
