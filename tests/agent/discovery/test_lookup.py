"""Looking a service up: the order of the sources, and documents that mean no good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.web import HOST, Web, always, at, fetching, redirect, serving
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS

from bespeak.agent.discovery.lookup import Discovered, Lookup, service_descriptions
from bespeak.agent.discovery.web_document import Fetched
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


async def test_discovery_and_openapi_documents_give_the_capabilities() -> None:
    found, web = await look({AI: FLIGHTS, "/openapi.json": OPENAPI})
    assert (found.kind, found.name, found.description) == ("ai", "Flights", "Finds flights.")
    assert web.targets == [AI]
    [capability] = found.capabilities
    assert (capability.id, capability.method, capability.path) == ("search_flights", "GET", "/api/flights")
    assert capability.input_schema["required"] == ["from"]
    assert found.findings == []
    found, _ = await look({"/openapi.json": OPENAPI})
    [capability] = found.capabilities
    assert (capability.id, capability.method, capability.path) == ("getPet", "GET", "/pets/{petId}")
    found, _ = await look({AI: FLIGHTS}, AI)
    assert found.address.target == "/"


def agis_json(document: str, **members: str) -> dict[str, str]:
    return {"agis": "1.0", "service": "Rooms", "agis_document": document, **members}


CARD_PLACE = "/.well-known/agent-card.json"
HTML = always(200, b"<html>", Content_Type="text/html")
LINKING = always(200, b"<html>", Content_Type="text/html", Link='</api/desc>; rel="service-desc"')
OTHER = {**FLIGHTS, "service": {**FLIGHTS["service"], "name": "Other"}}
ROOMS = agis_json("/rooms.agis", agtp="agtp://rooms.test")
PLACES = ["/openapi.json", "/.well-known/openapi.json", "/openapi.yaml"]
CARDS = [CARD_PLACE, "/.well-known/agent.json"]


@pytest.mark.requirement("AGIS-11-2", "AI-C-2", "AI-C-3")
@rows(
    "pages, path, kind, name, targets",
    # The alias is read only if it is named, and after the well-known path.
    ({"/ai": FLIGHTS}, "/ai", "ai", "Flights", [AI, "/ai", "/ai/:discover"]),
    ({"/ai": FLIGHTS}, "", "none", "", [AI, SUMMARY, "/", *PLACES, *CARDS]),
    ({AI: FLIGHTS, "/ai": OTHER}, "/ai", "ai", "Flights", [AI, "/ai/:discover"]),
    # The summary, the root and OpenAPI follow, in this order.
    ({SUMMARY: ROOMS, "/rooms.agis": yaml(AGIS)}, "", "agis", "Rooms", [AI, SUMMARY, "/rooms.agis"]),
    ({"/": yaml(AGIS)}, "", "agis", "Rooms", [AI, SUMMARY, "/"]),
    ({"/": HTML}, "", "none", "", [AI, SUMMARY, "/", *PLACES, *CARDS]),
    ({PLACES[0]: OPENAPI}, "", "openapi", "Pets", [AI, SUMMARY, "/", PLACES[0]]),
    ({PLACES[1]: OPENAPI}, "", "openapi", "Pets", [AI, SUMMARY, "/", *PLACES[:2]]),
    ({PLACES[2]: yaml(json.dumps(OPENAPI))}, "", "openapi", "Pets", [AI, SUMMARY, "/", *PLACES]),
    ({"/": LINKING, "/api/desc": OPENAPI}, "", "openapi", "Pets", [AI, SUMMARY, "/", "/api/desc"]),
    # One document can be named; the address of the discovery document means the service.
    ({"/v2/api.json": OPENAPI}, "/v2/api.json", "openapi", "Pets", ["/v2/api.json"]),
    ({"/rooms.agis": yaml(AGIS)}, "/rooms.agis", "agis", "Rooms", ["/rooms.agis"]),
    ({AI: FLIGHTS}, AI, "ai", "Flights", [AI]),
)
async def test_sources_are_asked_in_order_until_one_is_callable(
    pages: dict[str, Any], path: str, kind: str, name: str, targets: list[str]
) -> None:
    found, web = await look(pages, path)
    assert (found.kind, found.name, web.targets) == (kind, name, targets)
    assert found.findings == []


async def test_documents_are_read_where_the_summary_says_and_post_is_only_for_agtp_faces() -> None:
    found, web = await look({SUMMARY: ROOMS, "/rooms.agis": yaml(AGIS)})
    assert (found.agtp, str(found.agis.endpoints[0].endpoint)) == ("agtp://rooms.test", "BOOK /room")
    assert "application/agis" in web.asked[-1].headers["accept"]
    found, _ = await look({SUMMARY: agis_json("agtp://rooms.test")})
    assert (found.kind, found.agtp) == ("none", "agtp://rooms.test")
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
    assert (found.capabilities[0].origin.port, rules(found)) == (other.port, ["W109"])


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
@rows(
    "body, rule",
    (b"[1]", "D104"),
    (b"{", "D102"),
    (b"\xff\xfe{}", "D102"),
    (b"[" * 100_000, "D102"),
    (json.dumps({**FLIGHTS, "capabilities": []}).encode(), "D104"),
    (json.dumps({"aiendpoint": "1.0"}).encode(), "D103"),
    (json.dumps({**FLIGHTS, "service": {"name": 7}}).encode(), "D104"),
    ids=["an array", "half", "not UTF-8", "deep", "no capability", "nothing else", "a number for a name"],
)
async def test_unusable_document_is_reported_and_the_next_is_tried(body: bytes, rule: str) -> None:
    found, _ = await look({AI: always(200, body, Content_Type="application/json"), "/openapi.json": OPENAPI})
    assert found.kind == "openapi"
    assert rule in rules(found)
    assert "W105" in rules(found)


def capabilities(count: int, **members: str) -> dict[str, Any]:
    entry = {"description": "d", "endpoint": "/x", "method": "GET", **members}
    return {**FLIGHTS, "capabilities": [{"id": f"c{number}", **entry} for number in range(count)]}


@pytest.mark.requirement("AI-6.5-2")
async def test_capabilities_are_bounded_and_an_unreachable_host_is_asked_once() -> None:
    found, _ = await look({AI: capabilities(3_000)})
    assert (len(found.capabilities), rules(found)) == (100, ["W107"])
    found, _ = await look({AI: capabilities(3_000)}, most=None)
    assert len(found.capabilities) == 3_000
    found, _ = await look({AI: {**FLIGHTS, "capabilities": [{"id": "A"}] * 10_000}})
    assert found.kind == "none"
    assert len(found.findings) < 250
    async with serving(at({})) as web:
        pass
    async with fetching() as fetcher:
        found = await Lookup(fetcher).find(web.url)
    assert isinstance(found, Discovered)
    assert (found.kind, len(found.steps), rules(found)) == ("none", 1, ["W101"])


def naming(openapi: str) -> dict[str, Any]:
    return card(capabilities={"extensions": [{"uri": "urn:x", "params": {"openapi": openapi}}]})


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


NOTHING_ALLOWED = always(200, b"User-agent: *\nDisallow: /", Content_Type="text/plain")
PRIVATE = "https://metadata.test/latest"


@pytest.mark.requirement("AI-4.4-1", "AI-4.4-2", "AI-6.5-1", "AI-C-2")
@rows(
    "pages, path, kind, expected",
    ({AI: always(200, b"\xef\xbb\xbf" + json.dumps(FLIGHTS).encode())}, "", "ai", []),  # a byte order mark
    # A higher version and unknown members do no harm.
    ({AI: {**FLIGHTS, "aiendpoint": "7.3", "new": {"x": 1}, "meta": {"webmcp": True}}}, "", "ai", []),
    # A discovery document counts at its own place only.
    ({"/ai.json": FLIGHTS}, "/ai.json", "none", ["W105"]),
    # Large documents are not read.
    ({AI: {**FLIGHTS, "x": "y" * 300_000}}, "", "none", ["W103"]),
    ({AI: capabilities(10_000)}, "", "none", ["W103"]),
    ({"/robots.txt": NOTHING_ALLOWED, AI: FLIGHTS}, "", "none", ["W104"] * 8),
    # Addresses in private networks are not asked.
    ({SUMMARY: agis_json(PRIVATE)}, "", "none", ["W102"]),
    ({CARD_PLACE: naming(PRIVATE)}, "", "a2a", ["W102"]),
    ({CARD_PLACE: naming("/schemas/openapi.json"), "/schemas/openapi.json": OPENAPI}, "", "openapi", []),
    ({CARD_PLACE: card()}, CARD_PLACE, "a2a", []),
    ({CARD_PLACE: {"name": "Routes"}}, "", "none", ["W105"]),
)
async def test_findings_of_a_lookup(pages: dict[str, Any], path: str, kind: str, expected: list[str]) -> None:
    found, _ = await look(pages, path)
    assert (found.kind, rules(found)) == (kind, expected)


@pytest.mark.requirement("AI-4.1-2")
@rows(
    "member",
    *({"endpoint": text} for text in ("javascript:alert(1)", "file:///etc/passwd", "data:application/json,{}")),
    *({"endpoint": text} for text in ("http://flights.test/x", "https://user:pw@flights.test/x", "/x y", " ")),
    {"endpoint": "https://{host}.test/x"},
    *({"id": text} for text in ("поиск", "sеarch", "Search", "x" * 65, "", "search_flights")),
    *({"method": text} for text in ("TRACE", "get")),
    *({"description": text} for text in ("", None)),
)
async def test_a_wrong_capability_is_left_out_and_the_others_are_used(member: dict[str, Any]) -> None:
    [good] = FLIGHTS["capabilities"]
    bad = {**good, "id": "other", **member}
    found, _ = await look({AI: {**FLIGHTS, "capabilities": [good, bad]}})
    assert [capability.id for capability in found.capabilities] == ["search_flights"]
    assert "W106" in rules(found)


@pytest.mark.parametrize("place", [CARD_PLACE, "/.well-known/agent.json"])
async def test_skills_of_an_agent_that_has_only_a_card_are_capabilities(place: str) -> None:
    found, web = await look({place: card()})
    assert (found.kind, found.name) == ("a2a", "Routes")
    [capability] = found.capabilities
    assert (capability.id, capability.method, capability.path, capability.target) == ("plan", "PLAN", "/routes", "/a2a")
    assert [skill.id for skill in found.card.skills] == ["plan"]
    assert [each.url for each in found.card.interfaces] == [f"{web.url}/a2a"]


async def test_card_of_one_of_several_agents_of_a_host_is_read_at_its_address() -> None:
    place = f"/agents/routes{CARD_PLACE}"
    found, web = await look({place: card()}, place)
    assert (found.kind, web.targets) == ("a2a", [place])


@pytest.mark.parametrize("other", [{AI: FLIGHTS}, {"/openapi.json": OPENAPI}])
async def test_a_document_with_schemas_is_preferred_to_a_card(other: dict[str, Any]) -> None:
    found, web = await look({CARD_PLACE: card(), **other})
    assert found.kind in ("ai", "openapi")
    assert CARD_PLACE not in web.targets


@pytest.mark.parametrize("url", ["http://flights.test", "ftp://flights.test", "https://", f"https://u:p@{HOST}"])
async def test_invalid_address_is_reported(url: str) -> None:
    async with fetching() as fetcher:
        assert isinstance(await Lookup(fetcher).find(url), AddressFault)


def links(text: str) -> list[str]:
    page = Fetched(what="x", url="https://a.example/", final_url="https://a.example/b/", headers={"link": text})
    return service_descriptions([page])


@rows(
    "text, expected",
    ('</o.json>; rel="service-desc"', ["https://a.example/o.json"]),
    ("<o.json>;rel=service-desc", ["https://a.example/b/o.json"]),
    ('</a>; rel="next", </o>; type="x"; rel="help SERVICE-DESC"', ["https://a.example/o"]),
    ('</o>; rel="service-doc"', []),
    ("<javascript:x>; rel=service-desc", []),
    ("<http://a.example/o>; rel=service-desc", []),
    ("", []),
)
def test_descriptions_of_a_service_are_found_in_links(text: str, expected: list[str]) -> None:
    assert links(text) == expected


@given(st.text(alphabet='<>;,="rel service-desc/', max_size=80))
def test_no_link_raises(text: str) -> None:
    assert len(links(text)) <= 3
