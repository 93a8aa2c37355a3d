"""What was found."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.discovered import Discovered, Search
from bespeak.agent.discovery.web_document import FaultKind, Fetched, FetchFault
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.openapi.description import Description
from bespeak.protocol.address_guard import Origin, WebAddress


def test_a_capability_is_found_by_its_id() -> None:
    origin = Origin("https", "a.example", 443)
    address = WebAddress(origin, "/")
    one = Capability(id="one", method="GET", path="/x", origin=origin, target="/x")
    found = Discovered(kind="ai", address=address, base=address, capabilities=(one,))
    assert found.capability("one") is one
    assert found.capability("two") is None


HERE = WebAddress(Origin("https", "a.example", 443), "/")
URL = "https://a.example/.well-known/ai"
AI = AiDocument(name="Flights", description="Finds flights.", capabilities=())
OPENAPI = Description(openapi="3.1.0", title="Pets", description="Finds\n\npets.", operations=())


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({}, "none"),
        ({"openapi": OPENAPI}, "openapi"),
        ({"openapi": OPENAPI, "ai": AI}, "ai"),
        ({"ai": AI, "is_face": True}, "agtp"),
        ({"summary": {"service": "S"}}, "none"),
    ],
)
def test_the_most_telling_document_says_how_to_call(found: dict[str, Any], kind: str) -> None:
    assert Search(HERE, **found).result({}).kind == kind


@pytest.mark.parametrize(
    ("found", "names"),
    [
        ({"ai": AI, "openapi": OPENAPI}, ("Flights", "Finds flights.")),
        ({"openapi": OPENAPI}, ("Pets", "Finds pets.")),
        ({"summary": {"service": "S" * 300}}, ("S" * 200, "")),
        ({"summary": {"service": 1}}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_a_service_is_called_what_its_document_says(found: dict[str, Any], names: tuple[str, str]) -> None:
    result = Search(HERE, **found).result({})
    assert (result.name, result.description) == names


@pytest.mark.parametrize(("kind", "expected"), [("certificate", True), ("connection", True), ("status", False)])
def test_a_host_that_cannot_be_asked_is_given_up(kind: FaultKind, expected: bool) -> None:
    fetched = Fetched(what="it", url=URL, final_url=URL, fault=FetchFault(kind, "no", URL))
    assert Search(HERE, [fetched]).is_hopeless() is expected
    assert not Search(HERE).is_hopeless()


def test_addresses_start_from_the_first_document() -> None:
    search = Search(HERE)
    for url in ("https://b.example/x", "https://c.example/y"):
        assert str(search.start_from(Fetched(what="it", url=url, final_url=url))) == url
    assert str(search.result({}).base) == "https://b.example/x"


def test_number_of_omitted_capabilities_reported_is_bounded() -> None:
    search = Search(HERE)
    search.leave_out([(f"/{number}", "no") for number in range(1000)], URL)
    assert len(search.findings) == 100


def test_foreign_capabilities_and_preferences_are_reported() -> None:
    there = Origin("https", "b.example", 443)
    capability = Capability(id="x", method="GET", path="/x", origin=there, target="/x")
    found = Search(HERE, ai=AI, capabilities=[capability]).result({"tdm-reservation": "1"})
    assert [finding.rule for finding in found.findings] == ["W108", "W109"]
