"""Capabilities, and the documents in which they were found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.agent.discovery.lookup import Discovered
from bespeak.agent.discovery.readers import (
    PLACEHOLDER,
    Capability,
    Placement,
    in_braces,
    input_schema,
    may_name_header,
    resolve_template,
)
from bespeak.agent.discovery.web_document import FaultKind, Fetched, FetchFault
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.openapi.description import Description
from bespeak.protocol.address_guard import AddressFault, Origin, WebAddress

HERE = Origin("https", "a.example", 443)
BASE = WebAddress(HERE, "/.well-known/ai")


@pytest.mark.requirement("AI-3.3-8", "AI-3.3-9")
@rows(
    "text, origin, target",
    ("/x", HERE, "/x"),
    ("/x/:id", HERE, "/x/{id}"),
    ("/x/{id}/y/:n?z=1", HERE, "/x/{id}/y/{n}?z=1"),
    ("/room:book", HERE, "/room:book"),
    ("/rooms/{room_id}:find", HERE, "/rooms/{room_id}:find"),
    ("https://b.example/x/:id", Origin("https", "b.example", 443), "/x/{id}"),
    ("https://b.example:8443/{a}/{a}", Origin("https", "b.example", 8443), "/{a}/{a}"),
    ("https://b.example", Origin("https", "b.example", 443), "/"),
)
def test_an_endpoint_is_resolved_with_its_parameters(text: str, origin: Origin, target: str) -> None:
    assert resolve_template(text, BASE) == (origin, target)


@rows("text", "javascript:{x}", "https://{host}/x", "http://b.example/", "https://b.example:{port}/", "/x/{a$b}", "/{}")
def test_invalid_endpoint_is_refused(text: str) -> None:
    assert isinstance(resolve_template(text, BASE), AddressFault)


def test_placements_override_the_default_and_path_parameters_are_required() -> None:
    read = Capability(id="r", method="GET", path="/x/{id}", origin=HERE, target="/x/{id}")
    write = Capability(
        id="w", method="POST", path="/x", origin=HERE, target="/x", placements={"k": Placement("header", "X-K")}
    )
    assert [read.place_of(name).place for name in ("id", "q")] == ["path", "query"]
    assert [write.place_of(name).place for name in ("k", "q")] == ["header", "body"]
    assert (read.is_idempotent, write.is_idempotent) == (True, False)
    assert input_schema({"q": {"type": "integer"}}, ["q"], ["id"], closed=True) == {
        "type": "object",
        "properties": {"q": {"type": "integer"}, "id": {"type": ["string", "integer"]}},
        "required": ["q", "id"],
        "additionalProperties": False,
    }
    assert in_braces("/x/:id/room:book/{n}") == "/x/{id}/room:book/{n}"


@given(st.text(alphabet="/:{}ax.?-", max_size=30))
def test_resolved_target_has_braces_only_for_parameters(text: str) -> None:
    found = resolve_template(text, BASE)
    assert isinstance(found, AddressFault) or "{" not in PLACEHOLDER.sub("", found[1])


@rows("name, expected", ("X-Key", True), ("Host", False), ("content-length", False), ("a b", False), ("", False))
def test_a_document_names_no_header_that_a_message_hangs_on(name: str, expected: bool) -> None:
    assert may_name_header(name) is expected


def test_a_capability_is_found_by_its_id_and_reported_if_it_is_foreign() -> None:
    origin = Origin("https", "a.example", 443)
    address = WebAddress(origin, "/")
    one = Capability(id="one", method="GET", path="/x", origin=origin, target="/x")
    found = Discovered(address, capabilities=[one])
    assert found.capability("one") is one
    assert found.capability("two") is None
    there = Origin("https", "b.example", 443)
    capability = Capability(id="x", method="GET", path="/x", origin=there, target="/x")
    found = Discovered(PLACE, ai=AI, capabilities=[capability]).finish({"tdm-reservation": "1"})
    assert [finding.rule for finding in found.findings] == ["W108", "W109"]


PLACE = WebAddress(Origin("https", "a.example", 443), "/")
URL = "https://a.example/.well-known/ai"
AI = AiDocument(name="Flights", description="Finds flights.", capabilities=())
OPENAPI = Description(openapi="3.1.0", title="Pets", description="Finds\n\npets.", operations=())


@rows(
    "found, kind, name, description",
    ({}, "none", "", ""),
    ({"openapi": OPENAPI}, "openapi", "Pets", "Finds pets."),
    ({"openapi": OPENAPI, "ai": AI}, "ai", "Flights", "Finds flights."),
    ({"ai": AI, "is_face": True}, "agtp", "Flights", "Finds flights."),
    ({"summary": {"service": "S" * 300}}, "none", "S" * 200, ""),
    ({"summary": {"service": 1}}, "none", "", ""),
)
def test_most_telling_document_names_the_service(found: dict[str, Any], kind: str, name: str, description: str) -> None:
    result = Discovered(PLACE, **found).finish({})
    assert (result.kind, result.name, result.description) == (kind, name, description)


@pytest.mark.parametrize(("kind", "expected"), [("certificate", True), ("connection", True), ("status", False)])
def test_a_host_that_cannot_be_asked_is_given_up(kind: FaultKind, expected: bool) -> None:
    fetched = Fetched(what="it", url=URL, final_url=URL, fault=FetchFault(kind, "no", URL))
    assert Discovered(PLACE, [fetched]).is_hopeless() is expected
    assert not Discovered(PLACE).is_hopeless()


def test_addresses_start_from_the_first_document_and_reports_are_bounded() -> None:
    search = Discovered(PLACE)
    for url in ("https://b.example/x", "https://c.example/y"):
        assert str(search.start_from(Fetched(what="it", url=url, final_url=url))) == url
    assert str(search.finish({}).base) == "https://b.example/x"
    search = Discovered(PLACE)
    search.leave_out([(f"/{number}", "no") for number in range(1000)], URL)
    assert len(search.findings) == 100
