"""Looking a service up: the order of the sources, and documents that mean no good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.agent.discovery.web import HOST, Web, always, at, fetching, redirect, serving
from tests.documents.ai.test_document import FLIGHTS

from bespeak.agent.discovery.discovered import Discovered
from bespeak.agent.discovery.lookup import Lookup
from bespeak.protocol.address_guard import AddressFault

pytestmark = pytest.mark.anyio

AI = "/.well-known/ai"
SUMMARY = "/.well-known/agis.json"
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets/{petId}": {
            "get": {
                "operationId": "getPet",
                "summary": "One pet",
                "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "ok"}},
            }
        }
    },
}
AGIS = """agis: "1.0"
service: Rooms
agtp: agtp://rooms.test
vocabulary: {declared_verbs: [BOOK]}
endpoints:
  - method: BOOK
    path: /room
    semantic: {intent: Books a room for the guest, actor: agent, outcome: A reservation exists}
    input: {type: object, properties: {room_id: {type: string}}, required: [room_id]}
    output: {type: object}
    errors: []
"""


async def look(pages: dict[str, Any], path: str = "", **options: Any) -> tuple[Discovered, Web]:
    async with serving(at(pages)) as web, fetching() as fetcher:
        found = await Lookup(fetcher, **options).find(web.url + path)
    assert isinstance(found, Discovered)
    return found, web


def yaml(text: str) -> Any:
    return always(200, text.encode(), Content_Type="application/yaml")


def rules(found: Discovered) -> list[str]:
    return [finding.rule for finding in found.findings]


async def test_the_discovery_document_comes_first_and_is_enough() -> None:
    found, web = await look({AI: FLIGHTS, "/openapi.json": OPENAPI})
    assert (found.kind, found.name, found.description) == ("ai", "Flights", "Finds flights.")
    assert web.targets == [AI]
    [capability] = found.capabilities
    assert (capability.id, capability.method, capability.path) == ("search_flights", "GET", "/api/flights")
    assert capability.input_schema["required"] == ["from"]
    assert found.findings == ()


async def test_alias_is_read_only_if_it_is_named() -> None:
    found, web = await look({"/ai": FLIGHTS}, "/ai")
    assert web.targets == [AI, "/ai", "/ai/:discover"]
    assert (found.kind, found.name) == ("ai", "Flights")
    assert [capability.path for capability in found.capabilities] == ["/api/flights"]
    found, web = await look({"/ai": FLIGHTS})
    assert "/ai" not in web.targets
    assert found.kind == "none"


async def test_well_known_path_wins_over_a_named_alias() -> None:
    found, web = await look(
        {AI: FLIGHTS, "/ai": {**FLIGHTS, "service": {**FLIGHTS["service"], "name": "Other"}}}, "/ai"
    )
    assert found.name == "Flights"
    assert "/ai" not in web.targets


async def test_then_come_the_agis_summary_and_the_document_it_names() -> None:
    summary = {"agis": "1.0", "service": "Rooms", "agtp": "agtp://rooms.test", "agis_document": "/rooms.agis"}
    found, web = await look({SUMMARY: summary, "/rooms.agis": yaml(AGIS)})
    assert web.targets == [AI, SUMMARY, "/rooms.agis"]
    assert (found.kind, found.name, found.agtp) == ("agis", "Rooms", "agtp://rooms.test")
    assert found.agis is not None
    assert str(found.agis.endpoints[0].endpoint) == "BOOK /room"


async def test_a_document_that_is_only_on_agtp_is_named() -> None:
    summary = {"agis": "1.0", "service": "Rooms", "agis_document": "agtp://rooms.test"}
    found, _ = await look({SUMMARY: summary})
    assert (found.kind, found.agtp) == ("none", "agtp://rooms.test")


@pytest.mark.requirement("AGIS-11-2")
async def test_then_comes_the_root_by_accept() -> None:
    found, web = await look({"/": yaml(AGIS)})
    assert web.targets == [AI, SUMMARY, "/"]
    assert found.kind == "agis"
    assert "application/agis" in web.asked[-1].headers["accept"]


async def test_html_page_is_not_an_agis_document() -> None:
    found, _ = await look({"/": always(200, b"<html>", Content_Type="text/html")})
    assert found.kind == "none"
    assert found.findings == ()


@pytest.mark.parametrize("path", ["/openapi.json", "/.well-known/openapi.json"])
async def test_then_comes_openapi(path: str) -> None:
    found, _ = await look({path: OPENAPI})
    assert (found.kind, found.name) == ("openapi", "Pets")
    [capability] = found.capabilities
    assert (capability.id, capability.method, capability.path) == ("getPet", "GET", "/pets/{petId}")


async def test_a_link_leads_to_the_description() -> None:
    linking = always(200, b"<html>", Content_Type="text/html", Link='</api/desc>; rel="service-desc"')
    found, web = await look({"/": linking, "/api/desc": OPENAPI})
    assert found.kind == "openapi"
    assert web.targets[-1] == "/api/desc"


async def test_openapi_may_be_yaml() -> None:
    found, _ = await look({"/openapi.yaml": yaml(json.dumps(OPENAPI))})
    assert found.kind == "openapi"


async def test_one_document_can_be_named() -> None:
    found, web = await look({"/v2/api.json": OPENAPI}, "/v2/api.json")
    assert (found.kind, web.targets) == ("openapi", ["/v2/api.json"])
    found, _ = await look({"/rooms.agis": yaml(AGIS)}, "/rooms.agis")
    assert found.kind == "agis"


@pytest.mark.requirement("AI-C-2", "AI-C-3")
async def test_a_discovery_document_counts_at_its_own_place_only() -> None:
    found, _ = await look({"/ai.json": FLIGHTS}, "/ai.json")
    assert found.kind == "none"
    assert rules(found) == ["W105"]
    found, web = await look({"/ai": FLIGHTS})
    assert found.kind == "none"
    assert "/ai" not in web.targets


async def test_address_of_the_discovery_document_means_the_service() -> None:
    found, web = await look({AI: FLIGHTS}, AI)
    assert (found.kind, web.targets) == ("ai", [AI])
    assert found.address.target == "/"


async def test_post_is_sent_only_to_agtp_faces() -> None:
    verbs = {**FLIGHTS, "capabilities": [{**FLIGHTS["capabilities"][0], "endpoint": "/v1/flights:search"}]}
    found, web = await look({AI: verbs})
    assert found.kind == "ai"
    assert {asked.method for asked in web.asked} == {"GET"}
    found, web = await look({AI: FLIGHTS}, "/api")
    assert {asked.method for asked in web.asked} == {"GET"}


@pytest.mark.requirement("AI-3.3-8")
async def test_relative_endpoints_start_from_where_the_document_was_in_the_end() -> None:
    async with (
        serving(at({AI: FLIGHTS})) as other,
        serving(at({AI: redirect(other.url + AI)})) as web,
        fetching() as fetcher,
    ):
        found = await Lookup(fetcher).find(web.url)
    assert isinstance(found, Discovered)
    assert found.capabilities[0].origin.port == other.port
    assert rules(found) == ["W109"]


@pytest.mark.requirement("AI-C-4")
async def test_content_preferences_are_reported() -> None:
    page = always(200, FLIGHTS, TDM_Reservation="1", Content_Usage="train-ai=n")
    robots = always(200, b"User-agent: *\nContent-Usage: search=y\nAllow: /", Content_Type="text/plain")
    found, _ = await look({AI: page, "/robots.txt": robots})
    assert found.preferences == {
        "tdm-reservation": "1",
        "content-usage": "train-ai=n",
        "content-usage (robots.txt)": "search=y",
    }
    assert rules(found) == ["W108"] * 3


@pytest.mark.requirement("AI-4.3-4", "AI-4.3-5")
@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"[1]", "D104"),
        (b"{", "D102"),
        (b"\xff\xfe{}", "D102"),
        (b"[" * 100_000, "D102"),
        (json.dumps({**FLIGHTS, "capabilities": []}).encode(), "D104"),
        (json.dumps({"aiendpoint": "1.0"}).encode(), "D103"),
        (json.dumps({**FLIGHTS, "service": {"name": 7}}).encode(), "D104"),
    ],
    ids=["an array", "half", "not UTF-8", "deep", "no capability", "nothing else", "a number for a name"],
)
async def test_unusable_document_is_reported_and_the_next_is_tried(body: bytes, rule: str) -> None:
    found, _ = await look({AI: always(200, body, Content_Type="application/json"), "/openapi.json": OPENAPI})
    assert found.kind == "openapi"
    assert rule in rules(found)
    assert "W105" in rules(found)


async def test_a_byte_order_mark_does_no_harm() -> None:
    found, _ = await look({AI: always(200, b"\xef\xbb\xbf" + json.dumps(FLIGHTS).encode())})
    assert found.kind == "ai"


@pytest.mark.requirement("AI-6.5-1")
async def test_document_of_300_kilobytes_is_reported_and_not_read() -> None:
    found, _ = await look({AI: {**FLIGHTS, "x": "y" * 300_000}})
    assert found.kind == "none"
    assert rules(found) == ["W103"]


def capabilities(count: int, **members: str) -> dict[str, Any]:
    entry = {"description": "d", "endpoint": "/x", "method": "GET", **members}
    return {**FLIGHTS, "capabilities": [{"id": f"c{number}", **entry} for number in range(count)]}


@pytest.mark.requirement("AI-6.5-2")
async def test_a_hundred_capabilities_are_taken_unless_all_are_wanted() -> None:
    found, _ = await look({AI: capabilities(3_000)})
    assert len(found.capabilities) == 100
    assert rules(found) == ["W107"]
    found, _ = await look({AI: capabilities(3_000)}, most=None)
    assert len(found.capabilities) == 3_000


async def test_ten_thousand_capabilities_are_too_large_to_be_read() -> None:
    found, _ = await look({AI: capabilities(10_000)})
    assert (found.kind, rules(found)) == ("none", ["W103"])


async def test_ten_thousand_wrong_capabilities_make_a_bounded_list() -> None:
    found, _ = await look({AI: {**FLIGHTS, "capabilities": [{"id": "A"}] * 10_000}})
    assert found.kind == "none"
    assert len(found.findings) < 250


@pytest.mark.requirement("AI-4.1-2")
@pytest.mark.parametrize(
    "member",
    [
        {"endpoint": "javascript:alert(1)"},
        {"endpoint": "file:///etc/passwd"},
        {"endpoint": "data:application/json,{}"},
        {"endpoint": "http://flights.test/x"},
        {"endpoint": "https://user:pw@flights.test/x"},
        {"endpoint": "https://{host}.test/x"},
        {"endpoint": "/x y"},
        {"endpoint": " "},
        {"id": "поиск"},
        {"id": "sеarch"},
        {"id": "Search"},
        {"id": "x" * 65},
        {"id": ""},
        {"id": "search_flights"},
        {"method": "TRACE"},
        {"method": "get"},
        {"description": ""},
        {"description": None},
    ],
)
async def test_a_wrong_capability_is_left_out_and_the_others_are_used(member: dict[str, Any]) -> None:
    [good] = FLIGHTS["capabilities"]
    bad = {**good, "id": "other", **member}
    found, _ = await look({AI: {**FLIGHTS, "capabilities": [good, bad]}})
    assert [capability.id for capability in found.capabilities] == ["search_flights"]
    assert "W106" in rules(found)


@pytest.mark.requirement("AI-4.4-1", "AI-4.4-2")
async def test_a_higher_version_and_unknown_members_do_no_harm() -> None:
    found, _ = await look({AI: {**FLIGHTS, "aiendpoint": "7.3", "new": {"x": 1}, "meta": {"webmcp": True}}})
    assert (found.kind, found.findings) == ("ai", ())


async def test_disallowing_robots_txt_is_reported() -> None:
    robots = always(200, b"User-agent: *\nDisallow: /", Content_Type="text/plain")
    found, web = await look({"/robots.txt": robots, AI: FLIGHTS})
    assert found.kind == "none"
    assert set(rules(found)) == {"W104"}
    assert web.targets == []


async def test_a_host_that_cannot_be_asked_is_asked_once() -> None:
    async with serving(at({})) as web:
        pass
    async with fetching() as fetcher:
        found = await Lookup(fetcher).find(web.url)
    assert isinstance(found, Discovered)
    assert (found.kind, len(found.steps), rules(found)) == ("none", 1, ["W101"])


async def test_an_agis_document_in_a_private_network_is_not_asked_for() -> None:
    summary = {"agis": "1.0", "service": "Rooms", "agis_document": "https://metadata.test/latest"}
    found, _ = await look({SUMMARY: summary})
    assert "W102" in rules(found)


# Agent cards.

CARD_PLACE = "/.well-known/agent-card.json"


def card(**members: Any) -> dict[str, Any]:
    interface = {"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    skill = {"id": "plan", "name": "Plan", "description": "Plans a route.", "tags": ["maps"]}
    return {
        "name": "Routes",
        "description": "Plans routes.",
        "supportedInterfaces": [interface],
        "skills": [skill],
        **members,
    }


@pytest.mark.parametrize("place", [CARD_PLACE, "/.well-known/agent.json"])
async def test_an_agent_that_has_only_a_card_is_shown(place: str) -> None:
    found, web = await look({place: card()})
    assert (found.kind, found.name, found.capabilities) == ("a2a", "Routes", ())
    assert found.card is not None
    assert [skill.id for skill in found.card.skills] == ["plan"]
    assert [each.url for each in found.card.interfaces] == [f"{web.url}/a2a"]


@pytest.mark.parametrize("other", [{AI: FLIGHTS}, {"/openapi.json": OPENAPI}])
async def test_a_document_with_schemas_is_preferred_to_a_card(other: dict[str, Any]) -> None:
    found, web = await look({CARD_PLACE: card(), **other})
    assert found.kind in ("ai", "openapi")
    assert CARD_PLACE not in web.targets


async def test_the_schemas_that_a_card_names_are_read() -> None:
    extension = {"uri": "urn:x", "params": {"openapi": "/schemas/openapi.json"}}
    pages = {CARD_PLACE: card(capabilities={"extensions": [extension]}), "/schemas/openapi.json": OPENAPI}
    found, _ = await look(pages)
    assert (found.kind, [each.id for each in found.capabilities]) == ("openapi", ["getPet"])


async def test_schemas_in_a_private_network_are_not_asked_for() -> None:
    extension = {"uri": "urn:x", "params": {"openapi": "https://metadata.test/latest"}}
    found, _ = await look({CARD_PLACE: card(capabilities={"extensions": [extension]})})
    assert found.kind == "a2a"
    assert "W102" in rules(found)


async def test_a_card_can_be_named() -> None:
    found, web = await look({CARD_PLACE: card()}, CARD_PLACE)
    assert (found.kind, web.targets) == ("a2a", [CARD_PLACE])


async def test_a_card_that_cannot_be_used_is_reported() -> None:
    found, _ = await look({CARD_PLACE: {"name": "Routes"}})
    assert (found.kind, rules(found)) == ("none", ["W105"])


@pytest.mark.parametrize("url", ["http://flights.test", "ftp://flights.test", "https://", f"https://u:p@{HOST}"])
async def test_invalid_address_is_reported(url: str) -> None:
    async with fetching() as fetcher:
        assert isinstance(await Lookup(fetcher).find(url), AddressFault)
