"""The face of an assembled service: whose pages may call, whose word on addresses is taken, under which path."""

from __future__ import annotations

import pytest
from tests.faces.http.web import BOOK, FIND, Web, get, post, serving
from tests.service import make_endpoint

from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.messages import Context

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
