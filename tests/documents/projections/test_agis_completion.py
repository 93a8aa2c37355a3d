"""Exported AGIS documents: what AGIS asks for is there, and the linter accepts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from tests.checks.evolution.contracts import BOOK
from tests.checks.lint.contexts import CONTEXT
from tests.documents.openapi.notes_api import described
from tests.documents.openapi.reading import OK, document, read
from tests.service_strategy import services

from bespeak.checks.lint.document import check_text
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.agis.canonical import write_yaml
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.openapi.facade import import_description
from bespeak.documents.projections.agis_document import complete_agis, project_agis

ROOT = Path(__file__).parents[3]
CATALOG = load_bundled()


def completed(service: Service) -> dict[str, Any]:
    return complete_agis(project_agis(service), CATALOG)


def warnings(service: Service) -> list[str]:
    found = check_text(write_yaml(completed(service)), "exported.agis", CONTEXT).findings
    return [str(finding) for finding in found if finding.severity != "info"]


def imported(data: dict[str, Any]) -> Service:
    facades = import_description(read(data)[0]).facades
    identity = ServerIdentity(server_id="notes.example", operator="Acme", contact="https://notes.example", name="Notes")
    return Service(identity=identity, endpoints=tuple(facade.endpoint for facade in facades))


def test_the_hotel_is_exported_without_warnings() -> None:
    assert warnings(read_deployment(ROOT / "examples" / "hotel")[0].service()) == []


def test_an_imported_contract_is_exported_without_warnings() -> None:
    assert warnings(imported(described("https://notes.example"))) == []
    optional = {"parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}], "responses": OK}
    paths = {"/bulk-delete-users": {"post": optional}, "/found": {"get": optional}, "/users/{id}/sending": {"post": OK}}
    service = imported(document(paths))
    assert warnings(service) == []
    assert str(service.endpoints[0]) == "REMOVE /users"


def test_what_the_service_says_is_kept() -> None:
    semantic = replace(BOOK.semantic, confidence_guidance=0.95, capability="creation")
    said = completed(imported(described("https://notes.example")))
    assert said["version"] == "0.0.0"
    assert said["vocabulary"]["domain"] == "notes"
    service = Service(
        identity=ServerIdentity(server_id="a.example", operator="A", contact="c", name="A"),
        endpoints=(replace(BOOK, semantic=semantic),),
        description="Rooms.",
        document_version="2.1.0",
    )
    document = completed(service)
    assert (document["description"], document["version"]) == ("Rooms.", "2.1.0")
    block = document["endpoints"][0]["semantic"]
    assert (block["confidence_guidance"], block["capability"]) == (0.95, "transaction")


def test_guidance_follows_the_impact() -> None:
    service = Service(identity=ServerIdentity(server_id="a.example", operator="A", contact="c"), endpoints=(BOOK,))
    guidance = {}
    for impact in ("informational", "reversible", "irreversible"):
        semantic = replace(BOOK.semantic, impact=impact, confidence=0.1)
        changed = replace(service, endpoints=(replace(BOOK, semantic=semantic),))
        guidance[impact] = completed(changed)["endpoints"][0]["semantic"]["confidence_guidance"]
    assert guidance == {"informational": 0.5, "reversible": 0.7, "irreversible": 0.85}


def test_tools_that_would_share_a_name_get_one_each() -> None:
    paths = ("/room", "/room/{room_id}", "/room/{room_id}/key", "/room/key")
    service = Service(
        identity=ServerIdentity(server_id="a.example", operator="A", contact="c"),
        endpoints=tuple(replace(BOOK, path=path) for path in paths),
    )
    names = [entry["semantic"].get("mcp_tool_name") for entry in completed(service)["endpoints"]]
    assert names == [None, "book_room_by_room_id", "book_room_key", "book_room_key_2"]


@settings(max_examples=30, deadline=None)
@given(services())
def test_any_service_is_completed_and_nothing_is_lost(service: Service) -> None:
    before, after = project_agis(service), completed(service)
    assert {key: after[key] for key in before if key not in ("vocabulary", "endpoints")} == {
        key: value for key, value in before.items() if key not in ("vocabulary", "endpoints")
    }
    assert [(one["method"], one["path"]) for one in after["endpoints"]] == [
        (one["method"], one["path"]) for one in before["endpoints"]
    ]
