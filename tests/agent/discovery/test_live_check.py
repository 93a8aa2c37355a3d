"""The check of a live host as a whole, and hosts that have everything wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.discovery.live import (
    AGIS,
    AGTP,
    AI,
    AI_PATH,
    CONTEXT,
    OPENAPI,
    OPENAPI_PATH,
    PAGES,
    SUMMARY,
    SUMMARY_PATH,
    address,
    check,
    host,
    rules,
)
from tests.agent.discovery.web import Asked, Script, always, fetching, redirect, send, serving
from tests.cases import rows

from bespeak.agent.discovery.examination import Examiner
from bespeak.agent.discovery.live_check import check_live, live_address
from bespeak.protocol.address_guard import AddressFault, WebAddress

pytestmark = pytest.mark.anyio


def everywhere(script: Script) -> Script:
    """The same answer for all that is asked but robots.txt, which forbids nothing."""
    return lambda asked, writer: send(writer, 404) if asked.target == "/robots.txt" else script(asked, writer)


def endless(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    async def go_on() -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" " * 65536)
            await writer.drain()

    return go_on()


def silent(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    return asyncio.sleep(3600)


def hang_up(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.close()


DEEP = b"[" * 200_000
MANY = json.dumps(
    {**AI, "capabilities": [{"id": f"é{i}", "endpoint": "javascript:alert(1)", "method": "EVAL"} for i in range(2_500)]}
).encode()


async def test_documents_in_order_have_no_finding_and_others_are_reported_at_their_address() -> None:
    found = await check(host())
    assert rules(found) == []
    assert found.is_reached
    assert len(found.checked) == 6
    assert sum(checked is not None for checked in found.checked.values()) == 2
    found = await check(host({AI_PATH: {**AI, "aiendpoint": "2.0", "extra": 1}}))
    checked = next(each for url, each in found.checked.items() if url.endswith(AI_PATH))
    assert sorted(finding.rule for finding in checked.findings) == ["D170", "D187"]
    assert all(finding.location and finding.location.file.endswith(AI_PATH) for finding in checked.findings)
    assert all(finding.location and finding.location.line for finding in checked.findings)


@rows(
    "script",
    *(always(200, body) for body in (b"", b"[]", b"null", b"\xff\xfe", DEEP, MANY)),
    always(200, b"a: &a [*a, *a]", Content_Type="application/yaml"),
    always(200, gzip.compress(b" " * 41_000_000, 1), Content_Encoding="gzip"),
    always(200, {"agis": [], "endpoints": {"a": 1}, "aiendpoint": {}, "openapi": "3.1.0", "paths": []}),
    always(200, AI, Content_Type="\x7f", Cache_Control="max-age=" + "9" * 500, ETag=", ,"),
    always(999, AI),
    always(500, b"no"),
    always(304),
    redirect("https://user:pass@flights.test/"),
    redirect("//["),
    hang_up,
    endless,
)
async def test_hosts_with_everything_wrong_give_findings_and_no_error(script: Script) -> None:
    found = await check(everywhere(script))
    assert rules(found)
    assert found.score is None or 0 <= found.score.points < 90


async def test_all_faults_of_a_host_are_reported_together() -> None:
    page = always(200, MANY, Content_Type="text/html; charset=latin-1", Cache_Control="private", Set_Cookie="a=b")
    pages = {
        **dict.fromkeys(PAGES, page),
        AI_PATH: always(200, MANY, Content_Type="text/plain", Cache_Control="private"),
        SUMMARY_PATH: always(200, gzip.compress(b" " * 9_000_000), Content_Encoding="gzip"),
        "/ai": AI,
    }
    found = await check(host(pages), tls=False)
    assert {"W912", "W916", "W919", "W921", "W927", "W930", "W933", "D106"} <= set(rules(found))
    assert len(rules(found)) < 20_000


async def test_documents_as_large_as_they_may_be_are_checked_in_bounds() -> None:
    contract = b'{"agis": "1.0", "endpoints": [' + b'{"method": "B B"},' * 2_000 + b"{}]}"
    paths = b",".join(b'"/a%d": {"get": {"parameters": [{}]}}' % number for number in range(2_000))
    description = b'{"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "paths": {' + paths + b"}}"
    found = await check(host({AI_PATH: MANY, "/": contract, OPENAPI_PATH: description}))
    assert len(rules(found)) <= 20_100


async def test_hosts_that_say_nothing_or_never_end_cost_little() -> None:
    async with serving(silent) as web, fetching(retries=0, deadline=0.2) as fetcher:
        found = await check_live(address(web.url), Examiner(fetcher), CONTEXT)
    assert not found.is_reached
    assert rules(found) == ["W101"]
    tracemalloc.start()
    try:
        await check(everywhere(endless))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 60_000_000


async def test_redirect_to_a_slow_host_is_bounded_in_time() -> None:
    def script(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        name, _, port = asked.headers["host"].partition(":")
        if name == "flights.test":
            return redirect(f"http://slow.test:{port}/")(asked, writer)
        return silent(asked, writer)

    async with (
        serving(script, tls=False) as web,
        fetching(retries=0, insecure=True, typed=("flights.test", "slow.test")) as fetcher,
    ):
        found = await check_live(address(web.url), Examiner(fetcher, longest=0.2), CONTEXT)
    assert "W101" in rules(found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(["/a:b", "1.0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def some(whole: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A document with some of its members as they should be, and others as they come."""
    return st.fixed_dictionaries({}, optional={key: st.just(value) | JSON for key, value in whole.items()})


@settings(max_examples=40, deadline=None)
@given(ai=some(AI), summary=some(SUMMARY), agis=some(AGIS), openapi=some(OPENAPI), agtp=some(AGTP))
def test_whatever_documents_say_there_are_findings_and_a_score(**documents: Any) -> None:
    ai, summary, agis, openapi, agtp = documents.values()
    pages = {AI_PATH: ai, SUMMARY_PATH: summary, "/": agis, OPENAPI_PATH: openapi, "/.well-known/agtp": agtp}
    found = asyncio.run(check(host(pages), tls=False))
    assert found.score is not None
    assert 0 <= found.score.points <= 100
    assert "W912" in rules(found)


async def test_host_that_stops_responding_is_reported_for_each_document() -> None:
    def script(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        return host()(asked, writer) if asked.target in (AI_PATH, "/robots.txt") else silent(asked, writer)

    async with serving(script) as web, fetching(retries=0, deadline=0.2) as fetcher:
        found = await check_live(address(web.url), Examiner(fetcher), CONTEXT)
    assert found.is_reached
    assert "W929" in rules(found)


@pytest.mark.parametrize("path", ["", "/", "/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/ai"])
def test_a_host_may_be_named_by_one_of_its_documents(path: str) -> None:
    found = live_address(f"https://flights.test{path}")
    assert isinstance(found, WebAddress)
    assert str(found.origin) == "https://flights.test"


@rows(
    "text, said",
    ("https://flights.test/api", "use https://flights.test"),
    ("https://flights.test/?q=1", "use https://flights.test"),
    ("http://flights.test", "plain http"),
    ("https://me:secret@flights.test", "password"),
    ("ftp://flights.test", "not an https"),
    ("https://", "no host"),
)
def test_invalid_host_is_refused_with_a_reason(text: str, said: str) -> None:
    found = live_address(text)
    assert isinstance(found, AddressFault)
    assert said in found.message
    assert "secret" not in found.message
