"""The documents of the HTTP face, as they are served."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.cases import rows
from tests.documents.projections.test_discovery import assert_good
from tests.process import HOTEL, serving
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.app.server.http_face import make_face
from bespeak.app.server.http_pages import Publishing, check_publishing, make_pages
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.service import DataClass, DataManifest
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.state.identity.settings import AuthSettings

FIND = make_endpoint("FIND", "/rooms", echo, capability="discovery")
BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible", capability="transaction")
HIDDEN = replace(make_endpoint("AUDIT", "/ledger", echo), internal=True)
WEB = HttpSettings(category=("travel",))
STAYS = DataClass(name="stays", sensitivity="high", requires_authorization=True)
HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PAGES = ("/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt", "/")


def face(
    *endpoints: Endpoint, web: HttpSettings = WEB, publishing: Publishing | None = None, **fields: Any
) -> httpx.ASGITransport:
    dispatcher = build(*(endpoints or (FIND, BOOK, HIDDEN)), **fields).dispatcher
    return httpx.ASGITransport(make_face(dispatcher, web, publishing=publishing))


def ask(
    path: str, *endpoints: Endpoint, method: str = "GET", headers: dict[str, str] | None = None, **options: Any
) -> httpx.Response:
    async def run() -> httpx.Response:
        async with httpx.AsyncClient(transport=face(*endpoints, **options), base_url="http://rooms.test") as client:
            return await client.request(method, path, headers=headers or {})

    return asyncio.run(run())


@pytest.mark.requirement("AI-2.1-1", "AI-2.2-1", "AI-2.2-4", "AI-2.3-1", "AI-2.3-2", "AI-4.2-1", "AGIS-11.1-1")
@pytest.mark.parametrize("path", PAGES)
def test_a_document_has_its_content_type_and_cache_lifetime(path: str) -> None:
    reply = ask(path)
    assert reply.status_code == 200
    kind = "text/plain" if path == "/llms.txt" else "application/json"
    assert reply.headers["content-type"] == f"{kind}; charset=utf-8"
    assert reply.headers["cache-control"] == "public, max-age=86400"
    assert ask(path, headers={"If-None-Match": reply.headers["etag"]}).status_code == 304
    head = ask(path, method="HEAD")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(reply.content)))
    assert ask(path, method="POST").status_code == 405


@pytest.mark.parametrize(("number", "ahead"), [(5, False), (250, True)])
def test_documents_are_made_at_the_start_where_that_takes_long(number: int, ahead: bool) -> None:
    endpoints = [make_endpoint("FETCH", f"/thing{index}", echo) for index in range(number)]
    pages = make_pages(build(*endpoints).routes, WEB, Publishing(), keeps_state=False)
    for path in ("/.well-known/ai", "/openapi.json", "/llms.txt"):
        assert ("body" in vars(pages[path])) is ahead


@pytest.mark.requirement("AI-6.1-1")
@pytest.mark.parametrize("path", PAGES)
def test_no_document_names_an_internal_endpoint(path: str) -> None:
    assert "ledger" not in ask(path).text.lower()


def test_capabilities_are_published_if_the_semantic_layer_is_used() -> None:
    path = "/capabilities.jsonld"
    assert ask(path).status_code == 404
    used = SemanticSettings(names="https://acme.example/rooms/")
    reply = ask(path, semantic=used)
    assert reply.headers["content-type"] == "application/ld+json"
    assert "own:capability/book_room" in reply.text
    assert "ledger" not in reply.text
    assert path in ask("/llms.txt", semantic=used).text
    assert ask(path, semantic=used, policies=Policies(anonymous_discovery=False)).status_code == 401


@pytest.mark.process
def test_every_worker_serves_the_same_bytes_on_both_sides_of_a_port_it_did_not_choose() -> None:
    with serving(HOTEL, "--http", "127.0.0.1:0", "--workers", "2") as running:
        for path in (*PAGES, "/.well-known/agtp"):
            # A connection of its own for each, so that the workers take turns.
            replies = [httpx.get(f"{running.url}{path}") for _ in range(12)]
            assert len({(reply.content, reply.headers["etag"]) for reply in replies}) == 1
        bootstrap = httpx.get(f"{running.url}/.well-known/agtp").json()
        assert bootstrap["endpoint"] == f"hotel.example:{running.port}"
        assert httpx.get(f"{running.url}/.well-known/agis.json").json()["agis_document"] == f"{running.url}/"


@pytest.mark.requirement("AI-3.1-1", "AI-3.1-2", "AI-B-1", "AI-2.1-2", "AI-C-1", "AI-2.2-5", "AI-3.3-1")
def test_the_discovery_document_is_good_if_there_are_endpoints() -> None:
    assert_good(ask("/.well-known/ai").content)
    assert ask("/ai").status_code == 404
    web = replace(WEB, ai_alias=True)
    alias, original = ask("/ai", web=web), ask("/.well-known/ai", web=web)
    assert (alias.content, alias.headers) == (original.content, original.headers)
    assert ask("/.well-known/ai", HIDDEN).status_code == 404
    assert (ask("/.well-known/ai/rooms", HIDDEN).status_code, ask("/", HIDDEN).json()["endpoints"]) == (404, [])


@pytest.mark.requirement("AI-4.5-2")
def test_parts_are_served_beside_the_document_that_leads_to_them() -> None:
    many = [make_endpoint("FIND", f"/things/x{number}", echo) for number in range(150)]

    async def run() -> tuple[list[Any], set[str]]:
        async with httpx.AsyncClient(transport=face(*many), base_url="http://rooms.test") as client:
            main = (await client.get("/.well-known/ai")).json()["capabilities"]
            parts = [each["endpoint"] for each in main if each["endpoint"].startswith("/.well-known/")]
            replies = [await client.get(part) for part in parts]
            assert {reply.status_code for reply in replies} == {200}
            assert (await client.get("/.well-known/ai/other")).status_code == 404
            return parts, {each["endpoint"] for reply in replies for each in reply.json()["capabilities"]}

    parts, endpoints = asyncio.run(run())
    assert parts == ["/.well-known/ai/things", "/.well-known/ai/things-2"]
    assert endpoints == {f"/things/x{number}:find" for number in range(150)}


@rows(
    "accept, content_type, begin",
    ("*/*", "application/json; charset=utf-8", '{"agis":'),
    ("application/json", "application/json; charset=utf-8", '{"agis":'),
    ("application/agis", "application/agis", '{"agis":'),
    ("application/agis+json", "application/agis+json", '{"agis":'),
    ("image/png", "application/json; charset=utf-8", '{"agis":'),
    ("application/vnd.agtp.manifest+json", "application/vnd.agtp.manifest+json", '{"agtp_version":'),
    ("text/markdown", "text/markdown; charset=utf-8", "# test.example"),
    ("text/plain", "text/plain; charset=utf-8", "# test.example"),
    (HTML, "text/html; charset=utf-8", "<!doctype html>"),
)
def test_the_root_is_negotiated_by_accept(accept: str, content_type: str, begin: str) -> None:
    reply = ask("/", headers={"Accept": accept})
    assert (reply.status_code, reply.headers["content-type"]) == (200, content_type)
    assert reply.text.startswith(begin)
    assert reply.headers["vary"] == "Accept"
    # One word on caching, and not two that contradict each other.
    lifetime = {"manifest": "max-age=60", "html": "public, max-age=0"}
    expected = next((text for kind, text in lifetime.items() if kind in accept), "public, max-age=86400")
    assert reply.headers.get_list("cache-control") == [expected]
    assert ask("/", headers={"Accept": accept, "If-None-Match": reply.headers["etag"]}).status_code == 304


def test_every_link_of_the_page_for_browsers_leads_to_a_document() -> None:
    async def run() -> dict[str, int]:
        web = HttpSettings(url="http://rooms.test")
        publishing = Publishing(agtp_port=4480, mcp=True, a2a=A2aSettings(enabled=True))
        transport = face(FIND, BOOK, HIDDEN, web=web, publishing=publishing)
        async with httpx.AsyncClient(transport=transport, base_url="http://rooms.test") as client:
            page = await client.get("/", headers={"Accept": HTML})
            assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha256-")
            assert "ledger" not in page.text.lower()
            links = re.findall(r'href="([^"]+)"', page.text)
            return {link: (await client.get(link, headers={"Accept": HTML})).status_code for link in links}

    found = asyncio.run(run())
    assert set(found.values()) == {200}
    assert {"/.well-known/ai", "/openapi.json", "/.well-known/agis.json", "/llms.txt"} < set(found)
    assert {"/mcp/server-card", "/.well-known/agent-card.json", "/.well-known/agtp"} < set(found)


def test_each_endpoint_has_a_page_for_browsers_and_what_is_not_listed_has_none() -> None:
    page = ask("/docs/BOOK/room")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert ask("/docs/BOOK/room", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    assert ask("/docs").text == ask("/", headers={"Accept": HTML}).text
    assert ask("/docs/index.json").json()[0][:2] == ["BOOK", "/room"]
    assert ask("/docs/BOOK/room", method="POST").status_code == 405
    for path in ("/docs/AUDIT/ledger", "/docs/BOOK/rooms", "/docs/page-2"):
        assert ask(path).status_code == 404


def test_the_pages_for_browsers_can_be_turned_off_and_give_way_to_the_operators_own() -> None:
    redirect = Redirect(from_method="GET", to_method="FETCH")
    legacy = Policies(scope_required_for_invocation=False, methods=MethodPolicy(legacy=("GET",), redirects=(redirect,)))
    for options in (
        {"web": HttpSettings(docs=False)},
        {"policies": Policies(anonymous_discovery=False)},
    ):
        assert ask("/docs/BOOK/room", **options).status_code in (401, 404)
        assert "html" not in ask("/", headers={"Accept": HTML}, **options).headers["content-type"]
    reply = ask("/docs", make_endpoint("FETCH", "/docs", echo), policies=legacy)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")


def test_documents_from_the_dispatcher_have_their_own_cache_lifetime_and_agents_get_the_manifest() -> None:
    documents = ask("/methods:discover", method="POST")
    assert (documents.status_code, documents.headers.get_list("cache-control")) == (200, ["max-age=60"])
    described = ask("/:describe", method="POST")
    assert (described.status_code, described.headers.get_list("cache-control")) == (200, ["no-store"])
    refused = ask("/:discover", method="POST", headers={"Agent-ID": AGENT})
    assert (refused.status_code, refused.headers.get_list("cache-control")) == (422, ["no-store"])
    headers = {"Accept": "application/vnd.agtp.manifest+json", "Agent-ID": AGENT}
    assert ask("/", headers=headers).json()["server"]["server_id"] == "test.example"


@pytest.mark.requirement("CORE-3-16", "CORE-3-17")
def test_ports_modes_and_data_are_published_unless_they_are_kept() -> None:
    assert ask("/.well-known/agtp").status_code == 404
    reply = ask("/.well-known/agtp", publishing=Publishing(agtp_port=4480))
    assert reply.json()["endpoint"] == "test.example:4480"
    assert reply.json()["discovery"]["well_known_updated_at"] == "2026-01-01T00:00:00Z"
    reply = ask("/.well-known/ai", publishing=Publishing(auth=AuthSettings(modes=("token",))))
    assert reply.json()["auth"] == {"type": "bearer"}
    shown = {"data_manifest": DataManifest(available_data=(STAYS,), pre_auth_discovery=True)}
    kept = {"data_manifest": DataManifest(available_data=(STAYS,), pre_auth_discovery=False)}
    assert "stays" in ask("/", **shown).text
    assert "stays" in ask("/.well-known/agis.json", **shown).text
    for path in PAGES:
        assert "stays" not in ask(path, **kept).text


CLOSED = Policies(anonymous_discovery=False)


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/"])
def test_without_anonymous_discovery_no_document_is_public(path: str) -> None:
    reply = ask(path, policies=CLOSED)
    assert (reply.status_code, reply.content) == (401, ask("/nowhere", policies=CLOSED).content)
    assert ask(path, policies=CLOSED, headers={"Agent-ID": AGENT}).status_code == 404


@pytest.mark.requirement("AGIS-11.1-3")
def test_without_anonymous_discovery_the_root_requires_an_agent_and_a_promised_summary_does_not() -> None:
    assert ask("/", policies=CLOSED).status_code in (401, 403)
    assert ask("/", policies=CLOSED, headers={"Agent-ID": AGENT}).json()["agis"] == "1.0"
    manifest = DataManifest(available_data=(STAYS,), pre_auth_discovery=True)
    assert ask("/.well-known/agis.json", policies=CLOSED, data_manifest=manifest).json()["data_classes"] == ["stays"]


@pytest.mark.requirement("AI-6.3-1")
@rows(
    "endpoints, rates, found",
    ((FIND,), RateLimits(), ["Y892"]),
    ((FIND,), RateLimits(principal=Rate(1, "s", 1)), ["Y892"]),
    ((FIND, BOOK), RateLimits(endpoints={FIND.key: Rate(1, "s", 1)}), ["Y892"]),
    ((FIND,), RateLimits(endpoints={FIND.key: Rate(1, "s", 1)}), []),
    ((FIND,), RateLimits(agent=Rate(1, "s", 1)), []),
    ((FIND,), RateLimits(address=Rate(1, "s", 1)), []),
    ((HIDDEN,), RateLimits(), []),
)
def test_unlimited_endpoints_are_found(endpoints: tuple[Endpoint, ...], rates: RateLimits, found: list[str]) -> None:
    registrar = build(*endpoints, rate_limits=rates).server.registrar
    assert [finding.rule for finding in check_publishing(registrar, "https://rooms.example")] == found
    assert check_publishing(registrar, "http://127.0.0.1:8080") == []


CATALOGS = ("/.well-known/ai-catalog.json", "/.well-known/mcp/catalog.json", "/mcp/server-card")
SITE = replace(WEB, url="http://rooms.test")


@rows(
    "publishing, expected",
    (Publishing(), {"ai", "openapi", "agis"}),
    (
        Publishing(mcp=True, agtp_port=4481, a2a=A2aSettings(enabled=True)),
        {"mcp", "a2a", "ai", "openapi", "agis", "agtp"},
    ),
)
def test_the_catalog_lists_the_faces_that_there_are(publishing: Publishing, expected: set[str]) -> None:
    reply = ask(CATALOGS[0], web=SITE, publishing=publishing)
    assert reply.headers["content-type"] == "application/ai-catalog+json"
    entries = reply.json()["entries"]
    assert {entry["tags"][0] for entry in entries} == expected
    for entry in entries:
        if entry["url"].startswith("agtp:"):
            assert (entry["url"], entry["type"]) == ("agtp://test.example:4481", "application/vnd.agtp.manifest+json")
            continue
        found = ask(entry["url"], web=SITE, publishing=publishing, headers={"Accept": entry["type"]})
        assert found.status_code == 200
        served = "application/json" if entry["tags"] == ["a2a"] else entry["type"]
        assert found.headers["content-type"].partition(";")[0] == served
        assert found.headers["access-control-allow-origin"] == "*"


@rows(
    "web, publishing, policies, there",
    (SITE, Publishing(mcp=True), Policies(), [True, True, True]),
    (SITE, Publishing(), Policies(), [True, False, False]),
    (WEB, Publishing(mcp=True), Policies(), [False, False, False]),
    (SITE, Publishing(mcp=True), Policies(anonymous_discovery=False), [False, False, False]),
)
def test_cards_and_catalogs_need_a_url_and_public_discovery(
    web: HttpSettings, publishing: Publishing, policies: Policies, there: list[bool]
) -> None:
    found = [ask(path, web=web, publishing=publishing, policies=policies).status_code == 200 for path in CATALOGS]
    assert found == there


@pytest.mark.requirement("AGIS-11.1-2")
@rows("publishing, expected", (Publishing(), None), (Publishing(mcp=True), "http://rooms.test/mcp"))
def test_the_summary_names_the_mcp_server_if_there_is_one(publishing: Publishing, expected: str | None) -> None:
    found = ask("/.well-known/agis.json", web=SITE, publishing=publishing).json()
    assert found.get("mcp_tools_list") == expected
