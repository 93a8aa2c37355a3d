"""The face of an assembled service: whose pages may call, whose word on addresses is taken, under which path."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.faces.http.web import BOOK, FIND, Web, get, post, serving
from tests.service import build, echo, make_endpoint

from bespeak.app.server.http_face import make_guard, mount
from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope, Send
from bespeak.faces.http.guard import METADATA, Guard
from bespeak.protocol.exchange.messages import Context
from bespeak.state.identity.settings import AuthSettings, TokenSettings

pytestmark = pytest.mark.anyio

SHOP = "https://shop.example"


async def test_a_page_of_another_site_may_not_call() -> None:
    async with serving() as web:
        answer = await web.ask(post("/room:book", {}, "Origin: https://evil.example"))
        assert (answer.status, answer.json["code"]) == (403, "origin-not-allowed")
        own = await web.ask(post("/room:book", {}, "Origin: http://localhost"))
        assert own.status == 200


async def test_a_bent_name_gets_421() -> None:
    async with serving() as web:
        answer = await web.ask(b"GET /rooms/1:find HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert (answer.status, answer.json["code"]) == (421, "host-not-served")


async def test_an_allowed_origin_may_call_and_read_the_exposed_headers() -> None:
    async with serving(settings=HttpSettings(cors=(SHOP,))) as web:
        answer = await web.ask(post("/room:book", {}, f"Origin: {SHOP}"))
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, SHOP)
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert all(name in exposed for name in ("agtp-status", "retry-after", "idempotency-replayed", "etag"))
        refused = await web.ask(post("/room:book", {}, "Origin: https://evil.example"))
        assert (refused.status, "access-control-allow-origin" in refused.headers) == (403, False)


async def test_a_preflight_names_the_headers_that_are_read() -> None:
    wanted = "Access-Control-Request-Headers: agent-id, authority-scope, idempotency-key, authorization, content-type"
    lines = (f"Origin: {SHOP}", "Access-Control-Request-Method: POST", wanted)
    async with serving(settings=HttpSettings(cors=(SHOP,))) as web:
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


async def test_forwarded_addresses_are_ignored_unless_the_operator_trusts_the_proxy() -> None:
    forwarded = ("X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https")
    async with serving(WHERE) as web:
        assert await _located(web, *forwarded) == {"address": "127.0.0.1", "secure": False, "face": "http"}
    async with serving(WHERE, settings=HttpSettings(trusted_proxies=("10.0.0.0/8",))) as web:
        assert (await _located(web, *forwarded))["address"] == "127.0.0.1"


async def test_a_trusted_proxy_names_the_client_address() -> None:
    settings = HttpSettings(trusted_proxies=("127.0.0.1",))
    async with serving(WHERE, settings=settings) as web:
        # The last address that is no proxy counts: what stands before it was said by the caller.
        told = await _located(web, "X-Forwarded-For: 198.51.100.1, 203.0.113.9, 127.0.0.1", "X-Forwarded-Proto: https")
        assert told == {"address": "203.0.113.9", "secure": True, "face": "http"}
        assert (await _located(web))["address"] == "127.0.0.1"
        assert (await _located(web, "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.7"))["address"] == (
            "203.0.113.7"
        )


async def test_rates_are_counted_for_the_real_address() -> None:
    limits = RateLimits(address=Rate(1, "min", 1))
    settings = HttpSettings(trusted_proxies=("127.0.0.1",))
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


async def test_a_path_that_begins_like_that_of_the_public_address_is_found_either_way() -> None:
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


def test_an_application_is_found_with_and_without_the_prefix_of_the_public_url() -> None:
    assert sorted(mount("/a2a", application, WEB, {})) == [
        f"{METADATA}/a2a",
        f"{METADATA}/agents/a2a",
        "/a2a",
        "/agents/a2a",
    ]


async def described(guard: Guard) -> HttpResponse:
    found = await guard.admit({"type": "http", "method": "GET", "path": f"{METADATA}/a2a", "headers": []}, nothing)
    assert isinstance(found, HttpResponse)
    return found


def taking(issuer: str) -> AuthSettings:
    return AuthSettings(modes=("token",), token=TokenSettings(issuer=issuer))


async def test_metadata_names_the_resource_its_issuer_and_the_scopes_of_listed_endpoints() -> None:
    listed = make_endpoint("FIND", "/rooms", echo, scopes=("rooms:read",))
    hidden = replace(make_endpoint("FIND", "/ledger", echo, scopes=("ledger:read",)), internal=True)
    found = await described(make_guard("/a2a", build(listed, hidden).dispatcher, WEB, taking("https://login.example")))
    document = msgspec.json.decode(found.body)
    assert (document["resource"], document["scopes_supported"]) == ("https://x.example/agents/a2a", ["rooms:read"])
    assert document["authorization_servers"] == ["https://login.example"]


@pytest.mark.parametrize(("web", "issuer"), [(WEB, "login"), (HttpSettings(), "https://login.example")])
async def test_without_the_url_of_issuer_or_server_there_is_no_metadata(web: HttpSettings, issuer: str) -> None:
    guard = make_guard("/a2a", build().dispatcher, web, taking(issuer))
    assert (await described(guard)).status == 404
    assert guard.challenges


def test_a_server_without_tokens_does_not_challenge() -> None:
    assert not make_guard("/a2a", build().dispatcher, WEB, AuthSettings()).challenges
