"""The HTTP face, its guards, middleware and monitoring, and the documents that negotiation adds to it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.faces.http.web import BOOK, FIND, Web, get, post, serving
from tests.process import HOTEL
from tests.process import serving as serving_process
from tests.service import build, echo, make_endpoint
from tests.stateful import StatefulBench

import bespeak
from bespeak.app.server import http_face
from bespeak.app.server.http_face import OperationsApp, extra_needed, make_face, make_guard, mount
from bespeak.app.server.settings import HttpAssembly
from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.extensions.negotiation import syntheses
from bespeak.extensions.negotiation.store import PublishProposal
from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope, Send
from bespeak.faces.http.face import METADATA, Guard
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings, TokenSettings

pytestmark = pytest.mark.anyio


SHOP = "https://shop.example"


async def test_pages_of_other_sites_and_bent_names_are_refused() -> None:
    async with serving() as web:
        answer = await web.ask(post("/room:book", {}, "Origin: https://evil.example"))
        assert (answer.status, answer.json["code"]) == (403, "origin-not-allowed")
        assert (await web.ask(post("/room:book", {}, "Origin: http://localhost"))).status == 200
        answer = await web.ask(b"GET /rooms/1:find HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert (answer.status, answer.json["code"]) == (421, "host-not-served")


async def test_allowed_origins_may_call_and_preflights_name_the_headers() -> None:
    names = "agent-id, authority-scope, idempotency-key, authorization, content-type, range"
    wanted = f"Access-Control-Request-Headers: {names}"
    lines = (f"Origin: {SHOP}", "Access-Control-Request-Method: POST", wanted)
    async with serving(settings=HttpSettings(cors=(SHOP,))) as web:
        answer = await web.ask(post("/room:book", {}, f"Origin: {SHOP}"))
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, SHOP)
        exposed = answer.headers["access-control-expose-headers"].lower()
        shown = ("agtp-status", "retry-after", "idempotency-replayed", "etag", "content-disposition", "content-range")
        assert all(name in exposed for name in shown)
        refused = await web.ask(post("/room:book", {}, "Origin: https://evil.example"))
        assert (refused.status, "access-control-allow-origin" in refused.headers) == (403, False)
        answer = await web.ask(post("/room:book", None, *lines, method="OPTIONS"))
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, SHOP)
        assert "agent-signature" in answer.headers["access-control-allow-headers"].lower()
    async with serving() as web:
        assert (await web.ask(post("/room:book", None, *lines, method="OPTIONS"))).status == 403


def _where(context: Context) -> dict[str, object]:
    connection = context.request.connection
    return {"address": connection.address, "secure": connection.secure, "face": connection.face}


WHERE = make_endpoint("LOCATE", "/caller", _where)


async def _located(web: Web, *lines: str) -> dict[str, object]:
    return (await web.ask(get("/caller:locate", *lines))).json


async def test_addresses_are_those_that_a_trusted_proxy_names() -> None:
    forwarded = ("X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https")
    async with serving(WHERE) as web:
        assert await _located(web, *forwarded) == {"address": "127.0.0.1", "secure": False, "face": "http"}
    async with serving(WHERE, settings=HttpSettings(trusted_proxies=("10.0.0.0/8",))) as web:
        assert (await _located(web, *forwarded))["address"] == "127.0.0.1"
    settings = HttpSettings(trusted_proxies=("127.0.0.1",))
    async with serving(WHERE, settings=settings) as web:
        # The last address that is no proxy counts: what stands before it was said by the caller.
        told = await _located(web, "X-Forwarded-For: 198.51.100.1, 203.0.113.9, 127.0.0.1", "X-Forwarded-Proto: https")
        assert told == {"address": "203.0.113.9", "secure": True, "face": "http"}
        assert (await _located(web))["address"] == "127.0.0.1"
        assert (await _located(web, "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.7"))["address"] == (
            "203.0.113.7"
        )
    limits = RateLimits(address=Rate(1, "min", 1))
    async with serving(WHERE, settings=settings, rate_limits=limits) as web:
        numbers = [
            (await web.ask(get("/caller:locate", f"X-Forwarded-For: {address}"))).status
            for address in ("203.0.113.1", "198.51.100.1", "203.0.113.1")
        ]
        assert numbers == [200, 200, 429]


async def test_the_path_of_the_public_address_may_be_there_or_taken_off() -> None:
    async with serving(BOOK, settings=HttpSettings(url="https://rooms.example/v1")) as web:
        assert (await web.ask(post("/v1/room:book", {}))).status == 200
        assert (await web.ask(post("/room:book", {}))).status == 200
        assert (await web.ask(post("/v1x/room:book", {}))).status == 404
    async with serving(BOOK, FIND, settings=HttpSettings(url="https://acme.example/rooms")) as web:
        for path in ("/rooms/rooms/7:find", "/rooms/7:find"):
            assert (await web.ask(get(path))).json == {"room_id": "7"}
        assert (await web.ask(get("/rooms/7", "X-AGIS-Method: FIND"))).json == {"room_id": "7"}
        assert (await web.ask(post("/rooms/room:book", {}))).status == 200


WEB = HttpSettings(url="https://x.example/agents")


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Do nothing."""


async def nothing() -> Message:
    return {"type": "http.request"}


def test_applications_are_found_with_and_without_prefix_and_their_missing_packages_named() -> None:
    assert sorted(mount("/a2a", application, WEB, {})) == [
        f"{METADATA}/a2a",
        f"{METADATA}/agents/a2a",
        "/a2a",
        "/agents/a2a",
    ]
    assert not guarded(build().dispatcher, WEB, AuthSettings()).challenges
    advice = r"A2A needs the official SDK: pip install 'bespeak\[a2a\]'"
    with pytest.raises(ConfigError, match=advice), extra_needed("A2A", "a2a", "a2a", "google"):
        raise ModuleNotFoundError("No module named 'google'", name="google.protobuf")
    with pytest.raises(ModuleNotFoundError), extra_needed("A2A", "a2a", "a2a"):
        raise ModuleNotFoundError("No module named 'other'", name="other")


async def described(guard: Guard) -> HttpResponse:
    found = await guard.admit({"type": "http", "method": "GET", "path": f"{METADATA}/a2a", "headers": []}, nothing)
    assert isinstance(found, HttpResponse)
    return found


def taking(issuer: str) -> AuthSettings:
    return AuthSettings(modes=("token",), token=TokenSettings(issuer=issuer))


def guarded(dispatcher: Dispatcher, web: HttpSettings, auth: AuthSettings) -> Guard:
    return make_guard("/a2a", HttpAssembly(dispatcher, web, auth))


async def test_metadata_names_the_resource_its_issuer_and_the_scopes_of_listed_endpoints() -> None:
    listed = make_endpoint("FIND", "/rooms", echo, scopes=("rooms:read",))
    hidden = replace(make_endpoint("FIND", "/ledger", echo, scopes=("ledger:read",)), internal=True)
    found = await described(guarded(build(listed, hidden).dispatcher, WEB, taking("https://login.example")))
    document = msgspec.json.decode(found.body)
    assert (document["resource"], document["scopes_supported"]) == ("https://x.example/agents/a2a", ["rooms:read"])
    assert document["authorization_servers"] == ["https://login.example"]


@pytest.mark.parametrize(("web", "issuer"), [(WEB, "login"), (HttpSettings(), "https://login.example")])
async def test_without_the_url_of_issuer_or_server_there_is_no_metadata(web: HttpSettings, issuer: str) -> None:
    guard = guarded(build().dispatcher, web, taking(issuer))
    assert (await described(guard)).status == 404
    assert guard.challenges


SCOPES = ["rooms:read"]


@pytest.mark.process
@pytest.mark.parametrize("workers", ["1", "2"])
def test_health_and_metrics_are_served_apart_from_the_service(workers: str, tmp_path: Path) -> None:
    options = ["--operations", "127.0.0.1:0", "--workers", workers, "--store", str(tmp_path / "s.db")]
    with serving_process(HOTEL, *options, env={"HOTEL_LEDGER": str(tmp_path / "ledger")}) as served:
        url = served.operations
        for _ in range(8):  # fresh connections, so that two workers share them
            with bespeak.connect_sync(served.uri, scopes=SCOPES) as hotel:
                assert hotel.request("QUERY", "/rooms", {"beds": 2}).ok
        health = httpx.get(f"{url}/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert 'path="/rooms",status="200"} 8.0' in httpx.get(f"{url}/metrics").text
        assert httpx.post(f"{url}/healthz").status_code == 405
        assert "/healthz and /metrics" in httpx.get(f"{url}/").text
        assert httpx.get(f"{url}/metrics", headers={"Host": "evil.example"}).status_code == 421
        assert httpx.get(f"{url}/metrics", headers={"Origin": "http://evil.example"}).status_code == 403


class SilentStore:
    """Never answers, and counts those who ask."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self, command: object) -> object:
        self.asked += 1
        return await asyncio.Event().wait()


async def test_a_store_that_fails_or_does_not_answer_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_face.WITHIN < 1
    monkeypatch.setattr(http_face, "WITHIN", 0.01)
    silent = SilentStore()

    class Cut:
        class server:  # noqa: N801 - stands for an attribute
            store = silent

    app: Any = OperationsApp(Cut, None, loopback=True)  # type: ignore[arg-type] # only its store is used
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for _ in range(3):
            reply = await client.get("/healthz")
            assert (reply.status_code, reply.json()["reason"]) == (503, "the store did not answer within 0.01 s")
    assert silent.asked == 1  # a store that is busy is not asked more and more
    app._looking.cancel()

    class Broken:
        class server:  # noqa: N801 - stands for an attribute
            store = BrokenStore()

    app: Any = OperationsApp(Broken, None, loopback=True)  # type: ignore[arg-type] # only its store is used
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        reply = await client.get("/healthz")
    assert reply.status_code == 503
    assert reply.json() == {"status": "unavailable", "reason": "the store failed: the disk is gone"}


class BrokenStore:
    async def read(self, command: object) -> object:
        raise StoreUnavailableError("the disk is gone")


NEGOTIATED_WEB = ("/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt", "/")
"""Documents of the HTTP face; the last one is the AGIS document."""
LISTING = ("/.well-known/ai", "/openapi.json", "/llms.txt", "/")  # those that name every endpoint


async def read(bench: StatefulBench) -> dict[str, tuple[str, str]]:
    """Return the text of every document with its ETag, or the version by which a caller notices a change."""
    transport = httpx.ASGITransport(make_face(bench.bench.dispatcher, HttpSettings()))
    found = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://rooms.test") as client:
        for path in NEGOTIATED_WEB:
            reply = await client.get(path)
            assert reply.status_code == 200
            found[path] = (reply.text, reply.headers["etag"])
    for path in ("/", "/methods"):
        reply = await bench.send("DISCOVER", path, agent=None)
        found[f"DISCOVER {path}"] = (str(reply.json), str(reply.header("ETag")))
    manifest = (await bench.send("DISCOVER", "/", agent=None)).json
    found["document_version"] = (str(manifest["endpoints"]), manifest["document_version"])
    called = await bench.send("FIND", "/rooms", {"city": "Rome"})
    found["AGTP-API-Version"] = ("", str(called.header("AGTP-API-Version")))
    return found


def listed(documents: dict[str, tuple[str, str]]) -> set[str]:
    return {name for name, (text, _) in documents.items() if "/lodgings" in text}


def unchanged(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name, (_, tag) in after.items() if before[name][1] == tag} - {"/.well-known/agis.json"}


EVERYWHERE = {*LISTING, "DISCOVER /", "DISCOVER /methods", "document_version"}


async def test_session_scoped_and_persistent_syntheses_change_no_document_of_others() -> None:
    async with negotiating(persistent=True) as bench:
        before = await read(bench)
        assert (await bench.send("PROPOSE", "/", lodgings())).status == 263
        after = await read(bench)
        assert not listed(after)
        assert {name: tag for name, (_, tag) in after.items()} == {name: tag for name, (_, tag) in before.items()}
    async with negotiating(persistent=True) as bench:
        before = await read(bench)
        assert (await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})).status == 263
        assert await read(bench) == before


@pytest.mark.requirement("CORE-2.4-8", "AGIS-2-2")
@pytest.mark.parametrize("end", ["expiry", "release"])
async def test_documents_of_all_faces_change_with_a_synthesis(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with negotiating(persistent=True) as bench:
        negotiator = bench.bench.server.own_endpoints
        assert negotiator is not None
        before = await read(bench)
        proposed = (await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})).json
        await bench.store.do(PublishProposal(proposed["proposal_id"], 3600.0))
        await negotiator.refresh()
        during = await read(bench)
        assert listed(during) == EVERYWHERE
        assert not unchanged(before, during)
        if end == "expiry":
            later = SimpleNamespace(time=lambda: time.time() + 2 * 86400, monotonic=time.monotonic)
            monkeypatch.setattr(syntheses, "time", later)
            await negotiator.refresh()
        else:
            assert (await bench.send("SUSPEND", "/", {"synthesis_id": proposed["synthesis_id"]})).status == 200
        after = await read(bench)
        assert not listed(after)
        assert not unchanged(during, after)


@pytest.mark.requirement("AGIS-2-2")
async def test_agis_document_marks_what_was_proposed() -> None:
    async with negotiating(persistent=True) as bench:
        await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        document = await bench.send("DISCOVER", "/", accept="application/agis")
        marked = {endpoint["path"]: endpoint.get("proposed") for endpoint in document.json["endpoints"]}
        assert (marked["/lodgings"], marked["/rooms"]) == (True, None)
