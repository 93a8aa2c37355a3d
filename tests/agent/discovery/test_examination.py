"""What is asked of a live host, and what is kept of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.agent.discovery.live import AGIS, AI, AI_PATH, PAGES, SUMMARY, SUMMARY_PATH, address, host, look, served
from tests.agent.discovery.web import Asked, Script, Web, always, fetching, redirect, send, serving

from bespeak.agent.discovery.examination import ABSENT, Examiner

pytestmark = pytest.mark.anyio


async def asked_of(script: Script) -> Web:
    async with serving(script) as web, fetching(retries=0) as fetcher:
        await Examiner(fetcher).examine(address(web.url))
    return web


async def test_every_document_is_asked_for_once_by_get_and_once_by_head() -> None:
    web = await asked_of(host())
    asked = [(each.method, each.target) for each in web.asked]
    assert sorted(asked) == sorted(
        [("GET", "/robots.txt"), ("GET", "/ai"), ("GET", ABSENT)]
        + [(method, path) for method in ("GET", "HEAD") for path in PAGES]
    )

    # Nothing is sent that a capability could take.
    assert not any(":find" in each.target or each.body for each in web.asked)
    assert not any("authorization" in each.headers or "cookie" in each.headers for each in web.asked)


async def test_documents_are_read_in_utf8_whatever_their_type_says_except_html() -> None:
    seen = await look(host({AI_PATH: served(AI, Content_Type="text/plain")}))
    assert None not in (seen.ai_data, seen.agis, seen.openapi)
    assert (seen.ai.name, set(seen.documents)) == ("Flights", {"ai", "summary", "agis", "openapi", "agtp", "llms"})
    page = served(b"<html>", Content_Type="text/html")
    seen = await look(host(dict.fromkeys(PAGES, page)))
    assert [name for name in seen.documents if seen.there(name)] == []
    seen = await look(host({AI_PATH: b'{"aiendpoint": "\xff"}'}))
    assert seen.documents["ai"].text is None
    assert seen.ai is None
    seen = await look(host({AI_PATH: b"\xef\xbb\xbf" + json.dumps(AI).encode()}))
    assert (seen.documents["ai"].text or "").startswith("{")
    assert seen.ai is not None


async def test_summaries_lead_to_documents_and_invalid_ones_are_reported() -> None:
    assert "/ai" not in (await asked_of(host({AI_PATH: always(404)}))).targets
    pages = {"/": always(404), "/contract.agis": AGIS, SUMMARY_PATH: {**SUMMARY, "agis_document": "/contract.agis"}}
    seen = await look(host(pages))
    assert seen.agis is not None
    assert seen.documents["agis"].fetched.url.endswith("/contract.agis")
    seen = await look(host({"/openapi.json": {"hello": 1}}))
    assert seen.openapi is None
    assert [finding.severity for finding in seen.found] == ["warning"]
    seen = await look(host({AI_PATH: redirect("https://metadata.test/latest")}))
    assert seen.unreachable is None
    assert seen.documents["ai"].fetched.fault is not None


@pytest.mark.parametrize("named", ["https://elsewhere.test/a.agis", "agtp://flights.test"])
async def test_another_host_is_not_asked_because_a_document_names_it(named: str) -> None:
    async with serving(host({SUMMARY_PATH: {**SUMMARY, "agis_document": named}})) as web, fetching() as fetcher:
        seen = await Examiner(fetcher).examine(address(web.url))
    assert seen.agis is not None
    assert (seen.documents["agis"].fetched.url, seen.summary_fault) == (f"{web.url}/", "")


@pytest.mark.parametrize(
    ("named", "why"),
    [(None, "is missing"), (7, "is missing"), (" ", "is missing"), ("javascript:1", "not an https"), ("/gone", "404")],
)
async def test_reason_for_a_broken_summary_is_reported(named: object, why: str) -> None:
    seen = await look(host({"/": always(404), SUMMARY_PATH: {**SUMMARY, "agis_document": named}}))
    assert why in seen.summary_fault
    assert seen.agis is None


async def test_unreachable_hosts_are_reported_and_slow_ones_not_asked_on_and_on() -> None:
    async with serving(host()) as web:
        pass
    async with fetching(retries=0) as fetcher:
        seen = await Examiner(fetcher).examine(address(web.url))
    assert seen.unreachable.kind == "connection"
    moment = iter(range(0, 1000, 15))
    async with serving(host()) as web, fetching(retries=0) as fetcher:
        seen = await Examiner(fetcher, clock=lambda: float(next(moment))).examine(address(web.url))
    assert web.targets == [AI_PATH, SUMMARY_PATH]
    assert len(seen.unasked) == 8
    assert any(text.startswith("HEAD ") for text in seen.unasked)


async def test_a_host_that_only_knows_get_is_examined_all_the_same() -> None:
    def only_get(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "GET":
            host()(asked, writer)
        else:
            send(writer, 405)

    seen = await look(only_get)
    assert {served.head.status for served in seen.documents.values() if served.head} == {405}
