"""What ai-discovery asks of services and agents and no other test shows: faces on real ports, real agents in front."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.agent.discovery.live import AI_PATH, CONTEXT, PAGES, address
from tests.agent.discovery.web import AnyPort, Time, Web, always, at, authority_file, fetching, resolve
from tests.agent.discovery.web import serving as scripted
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS
from tests.faces.http.web import FIND, get, post, serving
from tests.process import HOTEL
from tests.process import serving as running
from tests.security.guarded import SCOPE, Guarded, bearer
from tests.service import echo, make_endpoint

import bespeak
from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import RateLimitedError
from bespeak.agent.client.http_transport import RequestPace
from bespeak.agent.client.web import WebServiceClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.agent.discovery.examination import Examiner
from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.live_check import check_live
from bespeak.agent.discovery.lookup import Discovered, Lookup
from bespeak.checks.lint.document import check_text
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.service import DataClass, DataManifest
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.address_guard import AddressGuard

pytestmark = pytest.mark.anyio

AGIS: dict[str, Any] = PAGES["/"]


# what a service does


@pytest.mark.requirement("AI-2.2-3", "AI-2.2-4", "AI-2.3-1", "AI-2.3-2", "AI-2.4-1", "AI-4.2-1")
async def test_the_document_is_served_without_findings() -> None:
    endpoints = [make_endpoint("FETCH", f"/zimmer{number}/balkon", echo) for number in range(100)]
    settings = HttpSettings(category=("travel",))
    fetcher = Fetcher(AddressGuard(AnyPort(("127.0.0.1",))))
    async with serving(*endpoints, settings=settings) as web:
        checked = await check_live(address(f"http://127.0.0.1:{web.port}"), Examiner(fetcher), CONTEXT)
        await fetcher.close()
    at_document = checked.found.get(f"http://127.0.0.1:{web.port}{AI_PATH}", [])
    # W912, which is told of the host, says that only this machine may be asked over plain http.
    assert [str(finding) for finding in at_document] == []
    assert {finding.rule for findings in checked.found.values() for finding in findings} <= {"W912"}


@pytest.mark.requirement("AI-2.1-1", "AI-2.1-4", "AI-2.2-1")
async def test_the_document_is_whole_without_a_query_and_the_same_with_any() -> None:
    async with serving() as web:
        plain = await web.ask(get(AI_PATH))
        asked = await web.ask(get(f"{AI_PATH}?fields=auth&compact=true"))
    assert plain.status == 200
    assert plain.json.keys() >= {"aiendpoint", "service", "capabilities"}
    assert asked.body == plain.body
    assert not any(set("?#") & set(each["endpoint"]) for each in plain.json["capabilities"])


@pytest.mark.requirement("AI-2.4-1")
async def test_letters_of_any_script_are_utf_8() -> None:
    greeting = make_endpoint("FIND", "/rooms", echo, properties={"größe": {"type": "string", "description": "広さ"}})
    async with serving(greeting, description="Zimmer mit Aussicht, 眺めの良い部屋") as web:
        answer = await web.ask(get(AI_PATH))
    assert json.loads(answer.body.decode())["service"]["description"] == "Zimmer mit Aussicht, 眺めの良い部屋"
    assert "größe" in answer.body.decode()


@pytest.mark.process
@pytest.mark.requirement("AI-2.2-2", "AI-6.2-1")
def test_the_public_document_names_the_required_credential_and_contains_none(tmp_path: Path) -> None:
    guarded = Guarded(tmp_path / "seats", "token")
    token = guarded.token()
    with guarded.serving("--http", "127.0.0.1:0") as running:
        document = httpx.get(f"{running.url}{AI_PATH}")
        called = httpx.post(f"{running.url}/seat:book")
        assert httpx.post(f"{running.url}/seat:book", headers=bearer(token)).status_code == 200
        later = httpx.get(f"{running.url}{AI_PATH}")
    assert (document.status_code, called.status_code) == (200, 401)
    assert document.json()["auth"] == {"type": "bearer"}
    assert later.content == document.content
    assert token not in document.text
    assert SCOPE not in document.json()["auth"].values()


@pytest.mark.requirement("AI-3.6-1", "AI-6.3-1", "AI-6.3-2")
@pytest.mark.parametrize("agent", [True, False], ids=["agent", "address"])
async def test_the_rate_that_the_document_announces_is_enforced_on_what_it_lists(agent: bool) -> None:
    rate = Rate(3, "min", 3)
    limits = RateLimits(agent=rate) if agent else RateLimits(address=rate)
    async with serving(FIND, rate_limits=limits) as web:
        document = (await web.ask(get(AI_PATH))).json
        assert document["rate_limits"]["requests_per_minute"] == 3
        [listed] = document["capabilities"]
        target = listed["endpoint"].replace("{room_id}", "1")
        answers = [await web.ask(post(target, None, "Agent-ID: " + "a" * 64, method="GET")) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


@pytest.mark.requirement("AI-3.3-6")
@pytest.mark.parametrize(("intent", "found"), [("TBD", True), ("Find rooms that are free on a date", False)])
async def test_an_empty_intent_is_reported_before_it_describes_a_capability(intent: str, found: bool) -> None:
    endpoint = replace(FIND, semantic=replace(FIND.semantic, intent=intent))
    async with serving(endpoint) as web:
        [listed] = (await web.ask(get(AI_PATH))).json["capabilities"]
    assert listed["description"] == intent
    [declared] = AGIS["endpoints"]
    written = {**AGIS, "endpoints": [{**declared, "semantic": {**declared["semantic"], "intent": intent}}]}
    rules = {finding.rule for finding in check_text(json.dumps(written), "rooms.agis", CONTEXT, "agis").findings}
    assert ("S427" in rules) is found


@pytest.mark.process
@pytest.mark.requirement("API-8.6-1", "API-14.2-1", "API-14.2-2", "API-14.3-1")
def test_from_the_manifest_one_gets_to_the_openapi_document_of_the_face_and_back() -> None:
    with running(HOTEL, "--http", "127.0.0.1:0") as served:
        with bespeak.connect_sync(served.uri, insecure=True) as hotel:
            [api] = hotel.discover().apis
        described = httpx.get(api["http_documentation"]).json()
        called = httpx.get(f"{api['url']}/rooms:query")
    assert described["openapi"].startswith("3.1")
    assert "/rooms:query" in described["paths"]
    assert called.headers["agtp-status"]
    assert described["info"]["x-agtp-derived-from"] == "agtp-manifest"
    assert described["info"]["x-agtp-manifest"].startswith("agtp://hotel.example")


# what an agent does


async def look(pages: dict[str, Any], **options: Any) -> tuple[Discovered, Web]:
    async with scripted(at(pages)) as web, fetching() as fetcher:
        found = await Lookup(fetcher, **options).find(web.url)
    assert isinstance(found, Discovered)
    return found, web


@pytest.mark.requirement("AI-2.1-3", "AI-C-2")
async def test_of_two_copies_the_one_at_the_well_known_place_counts() -> None:
    other = {**FLIGHTS, "service": {"name": "Trains", "description": "Finds trains."}}
    found, web = await look({AI_PATH: FLIGHTS, "/ai": other})
    assert (found.name, web.targets) == ("Flights", [AI_PATH])


@pytest.mark.requirement("AI-2.2-6", "AI-3.2-7")
async def test_documents_with_status_404_and_unknown_categories_are_ignored() -> None:
    found, _ = await look({AI_PATH: always(404, FLIGHTS)})
    assert (found.kind, found.ai, found.capabilities, found.findings) == ("none", None, [], [])
    found, _ = await look({AI_PATH: {**FLIGHTS, "service": {**FLIGHTS["service"], "category": ["aviation", "travel"]}}})
    assert (found.kind, found.findings) == ("ai", [])


@pytest.mark.requirement("AI-4.1-1", "AI-4.1-2")
@rows(
    "page, taken",
    (always(200, FLIGHTS), True),
    (always(204), False),
    (always(200, FLIGHTS, Content_Type="text/html"), False),
    (always(200, b"{", Content_Type="application/json"), False),
    (always(200, {**FLIGHTS, "capabilities": []}), False),
    (always(200, {key: value for key, value in FLIGHTS.items() if key != "service"}), False),
    ids=["good", "another status", "another type", "no JSON", "no capability", "no service"],
)
async def test_a_capability_that_fails_any_step_is_never_called(page: Any, taken: bool) -> None:
    found, web = await look({AI_PATH: page, "/api/flights": {"flights": []}})
    assert bool(found.capabilities) is taken
    assert "/api/flights" not in web.targets


async def calls_of(requests_per_minute: int | None, times: int, moment: Time, timeout: float) -> list[Any]:
    limits = {"requests_per_minute": requests_per_minute} if requests_per_minute else {}
    pages = {AI_PATH: {**FLIGHTS, "rate_limits": limits}, "/api/flights": {"flights": []}}
    options = WebOptions(cache="off", resolve=resolve)
    found: list[Any] = []
    with authority_file() as ca:
        async with scripted(at(pages)) as web, connect(web.url, ca_file=ca, web=options, timeout=timeout) as service:
            assert isinstance(service, WebServiceClient)
            if service._pace is not None:
                service._pace = RequestPace(service._pace.per_minute, clock=moment, sleep=moment.sleep)
            for _ in range(times):
                try:
                    found.append(await service.call("search_flights", **{"from": "ZRH"}))
                except RateLimitedError as error:
                    found.append(error)
            assert web.targets.count("/api/flights?from=ZRH") == found.count({"flights": []})
    return found


@pytest.mark.requirement("AI-3.6-2")
async def test_calls_wait_for_the_pace_of_the_document() -> None:
    moment = Time()
    assert await calls_of(2, 5, moment, timeout=90) == [{"flights": []}] * 5
    assert moment.slept == [60.0, 60.0]


@pytest.mark.requirement("AI-3.6-2")
async def test_a_call_that_would_wait_too_long_is_not_sent() -> None:
    moment = Time()
    first, second = await calls_of(1, 2, moment, timeout=5)
    assert first == {"flights": []}
    assert isinstance(second, RateLimitedError)
    assert "allows 1 request per minute" in second.message
    assert moment.slept == []


async def test_without_a_rate_the_client_does_not_wait() -> None:
    moment = Time()
    assert await calls_of(None, 5, moment, timeout=5) == [{"flights": []}] * 5
    assert moment.slept == []


@pytest.mark.requirement("AI-C-4")
async def test_a_document_does_not_override_robots_txt() -> None:
    robots = always(200, b"User-agent: *\nDisallow: /.well-known/ai\n", Content_Type="text/plain")
    found, web = await look({"/robots.txt": robots, AI_PATH: FLIGHTS})
    assert (found.ai, AI_PATH in web.targets) == (None, False)
    assert "W104" in [finding.rule for finding in found.findings]


# the AGIS document and its summary on the web


def agis(**changes: Any) -> dict[str, Any]:
    return {"/": always(200, {**AGIS, **changes}, Content_Type="application/agis+json")}


@pytest.mark.requirement("AGIS-11-2", "AGIS-11-4")
async def test_the_document_of_the_root_becomes_a_map_of_verbs_and_endpoints() -> None:
    found, web = await look(agis())
    assert web.targets[-1] == "/"
    assert found.agis is not None
    assert found.agis.vocabulary is not None
    assert (found.agis.vocabulary.declared_verbs, found.agis.vocabulary.domain) == (("FIND",), "travel")
    with authority_file() as ca:
        options = WebOptions(cache="off", resolve=resolve)
        async with scripted(at(agis())) as again, connect(again.url, ca_file=ca, web=options) as service:
            endpoint = (await service.discover()).endpoint("FIND", "/flight")
    assert endpoint is not None
    assert endpoint.semantic.intent == "Finds flights between two airports."
    assert endpoint.input_schema["required"] == ["from"]


@pytest.mark.requirement("AGIS-11-3", "AGIS-13-1", "AGIS-13-2", "AGIS-13-4")
@rows(
    "changes, rule",
    ({"vocabulary": {"declared_verbs": ["FIND", "BOOK"], "domain": "travel"}}, "V502"),
    ({"vocabulary": {"declared_verbs": ["BOOK"], "domain": "travel"}}, "V501"),
    ({"endpoints": [{**AGIS["endpoints"][0], "method": "POST"}]}, "M2"),
    ({"endpoints": [{**AGIS["endpoints"][0], "path": "/find-flight"}]}, "P3"),
    ({"endpoints": [{**AGIS["endpoints"][0], "output": {"type": "text"}}]}, "J6"),
    ({"endpoints": [{**AGIS["endpoints"][0], "input": {"properties": {"from": {"minimum": "1"}}}}]}, "J625"),
    ids=["an unused verb", "an undeclared verb", "a method of HTTP", "a verb in the path", "no schema", "no input"],
)
async def test_a_document_that_breaks_the_rules_is_a_failed_discovery(changes: dict[str, Any], rule: str) -> None:
    found, _ = await look(agis(**changes))
    assert (found.kind, found.agis) == ("none", None)
    rules = [finding.rule for finding in found.findings]
    assert any(each.startswith(rule) for each in rules), rules
    assert rules[-1] == "W105"


@pytest.mark.requirement("AGIS-11.1-1", "AGIS-11.1-4", "AGIS-11.1-6")
async def test_the_summary_links_to_the_full_document_and_has_less() -> None:
    stays = DataClass(name="stays", description="Who stayed when", sensitivity="high", requires_authorization=True)
    manifest = DataManifest(available_data=(stays,), pre_auth_discovery=True)
    settings = HttpSettings(url="http://localhost")
    async with serving(settings=settings, data_manifest=manifest) as web:
        summary = await web.ask(get("/.well-known/agis.json"))
        place = summary.json["agis_document"].removeprefix("http://localhost")
        whole = await web.ask(get(place, "Accept: application/agis+json"))
    assert (summary.status, summary.json["data_classes"]) == (200, ["stays"])
    for private in ("high", "Who stayed", "sensitivity", "requires_authorization"):
        assert private in whole.body.decode()
        assert private not in summary.body.decode()
    assert [each["method"] for each in whole.json["endpoints"]] == summary.json["methods"]


@pytest.mark.requirement("AGIS-10.1-1")
async def test_the_header_selects_the_method_and_http_only_transports_it() -> None:
    book = make_endpoint("BOOK", "/room", lambda input: {"done": "booked"})  # noqa: A006
    cancel = make_endpoint("CANCEL", "/room", lambda input: {"done": "cancelled"})  # noqa: A006
    async with serving(book, cancel) as web:
        done = [
            (await web.ask(post("/room", {}, f"X-AGIS-Method: {verb}", "X-AGIS-Grammar: AGIS/1.0"))).json["done"]
            for verb in ("BOOK", "CANCEL")
        ]
        refused = await web.ask(post("/room", {}, "X-AGIS-Method: POST", "X-AGIS-Grammar: AGIS/1.0"))
    assert done == ["booked", "cancelled"]
    assert refused.headers["agtp-status"] == "454"
