"""From an address of the web to a client."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.agent.client.faces import AT_ONCE, NOTHING_KEPT, served
from tests.agent.discovery.test_lookup import AGIS, OPENAPI
from tests.agent.discovery.web import (
    HOST,
    Asked,
    Web,
    always,
    at,
    authority_file,
    in_turn,
    resolve,
    server_tls,
    serving,
)
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS

import bespeak
from bespeak.agent.client import errors
from bespeak.agent.client.connect import connect
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web import DescribedClient, WebConnection, WebServiceClient, look_up
from bespeak.agent.client.web_options import WebOptions
from bespeak.errors import ConfigError, RemoteProtocolError

pytestmark = pytest.mark.anyio
OPTIONS = WebOptions(cache="off", resolve=resolve)


async def client_of(pages: dict[str, Any], path: str = "") -> ServiceClient:
    with authority_file() as ca:
        async with serving(at(pages)) as web, connect(web.url + path, ca_file=ca, web=OPTIONS) as service:
            return service


@rows(
    "pages, kind",
    ({"/.well-known/ai": FLIGHTS}, WebServiceClient),
    ({"/openapi.json": OPENAPI}, WebServiceClient),
    ({"/": always(200, AGIS.encode(), Content_Type="application/yaml")}, DescribedClient),
)
async def test_discovered_document_chooses_the_client(pages: dict[str, Any], kind: type[ServiceClient]) -> None:
    service = await client_of(pages)
    assert type(service) is kind
    assert service.discovered is not None
    assert service.manifest is not None
    with pytest.raises(ConfigError, match=r"Open another client of .* with bespeak\.connect"):
        service.for_agent("bob")


async def test_faces_of_agtp_are_preferred_and_agis_methods_sent_in_a_header() -> None:
    async with served() as place, connect(place.uris["http"], web=NOTHING_KEPT) as service:
        assert type(service) is ServiceClient
        assert service.discovered.kind == "agtp"
    pages = {"/": always(200, AGIS.encode(), Content_Type="application/yaml"), "/room": {"ok": True}}
    with authority_file() as ca:
        async with serving(at(pages)) as web, connect(web.url, ca_file=ca, web=OPTIONS) as service:
            assert await service.call("BOOK", "/room", room_id="1") == {"ok": True}
            asked = web.asked[-1]
    assert (asked.method, asked.target, asked.headers["x-agis-method"]) == ("POST", "/room", "BOOK")


@pytest.mark.requirement("AI-6.4-3", "AI-6.4-4")
@pytest.mark.parametrize("trusted", [True, False], ids=["of another host", "untrusted"])
async def test_certificate_of_another_host_or_authority_is_refused(trusted: bool) -> None:
    options: dict[str, Any] = {"tls": server_tls("other.test")} if trusted else {}
    with authority_file() as ca:
        async with serving(at({"/.well-known/ai": FLIGHTS}), **options) as web:
            with pytest.raises(errors.UnreachableError, match="the certificate is not valid"):
                async with connect(web.url, ca_file=ca if trusted else None, web=OPTIONS):
                    pass
    assert web.asked == []


@rows(
    "uri, options, words",
    ("http://a.example", {}, "--insecure"),
    ("https://me:pw@a.example", {}, "a user name or password"),
    ("https://a.example", {"verify": False}, "always verified"),
    ("https://a.example", {"client_key": Path("x")}, "client_cert"),
    ("https://[a.example", {}, "is not a valid address"),
    ("https://", {}, "has no host"),
)
async def test_invalid_address_or_option_is_reported(uri: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        async with connect(uri, web=OPTIONS, **options):
            pass
    assert "pw" not in str(caught.value)


@pytest.mark.requirement("AI-6.2-2")
async def test_documents_are_kept_between_clients(tmp_path: Path) -> None:
    page = always(200, FLIGHTS, Cache_Control="max-age=1000")
    options = WebOptions(cache=tmp_path, resolve=resolve)
    with authority_file() as ca:
        async with serving(at({"/.well-known/ai": page})) as web:
            for _ in range(3):
                async with connect(web.url, ca_file=ca, token="sekret", web=options) as service:
                    assert isinstance(service, WebServiceClient)
    assert web.targets == ["/.well-known/ai"]
    assert not any(b"sekret" in file.read_bytes() for file in tmp_path.iterdir())


async def test_services_are_looked_up_without_a_client_and_the_error_says_what_was_found() -> None:
    with authority_file() as ca:
        async with serving(at({"/.well-known/ai": FLIGHTS, "/openapi.json": OPENAPI})) as web:
            found = await look_up(web.url, WebConnection(ca_file=ca), OPTIONS)
    assert (found.kind, found.openapi, found.address.origin.host) == ("ai", None, HOST)
    with pytest.raises(errors.NothingDiscoveredError, match=r"Checked .*/\.well-known/ai") as caught:
        await client_of({})
    assert caught.value.discovered.kind == "none"
    with pytest.raises(errors.NothingDiscoveredError, match=r"connect to agtp://rooms\.test"):
        await client_of({"/.well-known/agis.json": {"agis": "1.0", "agis_document": "agtp://rooms.test"}})


def test_blocking_client_calls_the_same_capability() -> None:
    started, ended, port = threading.Event(), threading.Event(), []

    async def serve() -> None:
        pages = {"/.well-known/ai": FLIGHTS, "/api/flights": {"flights": []}}
        async with serving(at(pages), tls=False) as web:
            port.append(web.port)
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(20)
    try:
        with bespeak.connect_sync(f"http://127.0.0.1:{port[0]}", web=NOTHING_KEPT) as service:
            assert service.call("search_flights", **{"from": "ZRH"}) == {"flights": []}
            assert service.discovered.name == "Flights"
            assert [entry.path for entry in service.methods()] == ["/api/flights"]
    finally:
        ended.set()
        thread.join()


SEARCH = FLIGHTS["capabilities"][0]
FLIGHT = {"id": "get_flight", "description": "One flight", "endpoint": "/api/flights/:id", "method": "GET"}
BOOK = {
    "id": "book_flight",
    "description": "Book a flight",
    "endpoint": "/api/bookings",
    "method": "POST",
    "params": {"flight": "string, required", "seats": "integer, optional, min 1, max 9"},
}


def document(*capabilities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {**FLIGHTS, "capabilities": list(capabilities or (SEARCH, FLIGHT, BOOK)), **members}


@asynccontextmanager
async def service_of(
    pages: dict[str, Any], trusted_hosts: tuple[str, ...] = (), *, allow_private: bool = False, **options: Any
) -> AsyncIterator[tuple[WebServiceClient, Web]]:
    web_options = WebOptions(cache="off", resolve=resolve, trusted_hosts=trusted_hosts, allow_private=allow_private)
    with authority_file() as ca:
        async with (
            serving(at(pages)) as web,
            connect(web.url, ca_file=ca, retry=AT_ONCE, web=web_options, **options) as service,
        ):
            web.asked.clear()
            assert isinstance(service, WebServiceClient)
            yield service, web


def site(answer: Any = None, **members: Any) -> dict[str, Any]:
    ok = {"ok": True} if answer is None else answer
    return {"/.well-known/ai": document(**members), "/api/flights": ok, "/api/flights/7": ok, "/api/bookings": ok}


async def asked(call: tuple[Any, ...], given: dict[str, Any], **options: Any) -> Asked:
    async with service_of(site(), **options) as (service, web):
        assert await service.call(*call, **given) == {"ok": True}
    [found] = web.asked
    return found


@pytest.mark.parametrize("call", [("search_flights",), ("GET", "/api/flights"), ("get", "/api/flights")])
async def test_a_capability_is_called_by_its_id_or_by_its_place(call: tuple[str, ...]) -> None:
    found = await asked(call, {"from": "a b"})
    assert (found.method, found.target, found.body) == ("GET", "/api/flights?from=a%20b", b"")


@rows(
    "call, given",
    (("get_flight",), {"id": 7}),
    (("GET", "/api/flights/{id}"), {"id": "7"}),
    (("GET", "/api/flights/:id"), {"id": "7"}),
    (("GET", "/api/flights/7"), {}),
)
async def test_a_path_is_filled_or_already_full(call: tuple[str, ...], given: dict[str, Any]) -> None:
    assert (await asked(call, given)).target == "/api/flights/7"


async def test_capabilities_are_written_as_json_with_the_headers_of_the_caller() -> None:
    given = {"flight": date(2027, 1, 2), "seats": 2}
    found = await asked(("book_flight",), given, agent_id="ab" * 32, scopes=["a:b"])
    assert (found.method, found.headers["content-type"]) == ("POST", "application/json")
    assert json.loads(found.body) == {"flight": "2027-01-02", "seats": 2}
    assert not {"agent-id", "authority-scope", "task-id"} & found.headers.keys()
    async with service_of(site(), token="sekret") as (service, web):
        await service.request(
            "book_flight", "", {"flight": "x"}, headers={"x-api-key": "mine"}, idempotency_key="k", task_id="t"
        )
    assert (web.asked[0].headers["x-api-key"], web.asked[0].headers["idempotency-key"]) == ("mine", "k")


@pytest.mark.requirement("AI-4.1-2")
@rows(
    "call, given",
    *[("search_flights", given) for given in ({}, {"from": 7}, {"from": "x", "form": "y"})],
    ("book_flight", {"flight": "x", "seats": 10}),
    ("get_flight", {"id": ".."}),
)
async def test_an_input_that_breaks_its_parameters_is_refused_before_it_is_sent(call: str, given: Any) -> None:
    async with service_of(site()) as (service, web):
        with pytest.raises(errors.InvalidInputError) as caught:
            await service.call(call, **given)
    assert caught.value.violations
    assert web.asked == []


@pytest.mark.parametrize("call", [("nothing",), ("GET", "/nothing"), ("POST", "/api/flights"), ("",)])
async def test_unknown_capability_is_refused_without_a_request(call: tuple[str, ...]) -> None:
    async with service_of(site()) as (service, web):
        with pytest.raises(errors.NotFoundError, match="search_flights"):
            await service.call(*call)
    assert web.asked == []


@pytest.mark.requirement("AI-3.4-2")
async def test_the_credential_goes_where_the_document_says() -> None:
    cases: list[tuple[Any, dict[str, str]]] = [
        ({"type": "apikey", "header": "X-API-Key"}, {"x-api-key": "sekret"}),
        ({"type": "bearer"}, {"authorization": "Bearer sekret"}),
        ({"type": "oauth2"}, {"authorization": "Bearer sekret"}),
        (None, {"authorization": "Bearer sekret"}),
        ({"type": "none"}, {}),
        ({"type": "apikey", "header": "Content-Length"}, {}),
    ]
    for auth, expected in cases:
        async with service_of(site(auth=auth), token=lambda: "sekret") as (service, web):
            await service.call("get_flight", id="7")
        assert {name: text for name, text in web.asked[0].headers.items() if "sekret" in text} == expected


@pytest.mark.requirement("AI-3.3-9")
async def test_a_credential_stays_with_the_host_and_port_that_the_user_named() -> None:
    with authority_file():
        async with serving(at({"/x": {"ok": True}})) as other:
            away = {**FLIGHT, "endpoint": f"{other.url}/x"}
            pages = {"/.well-known/ai": document(away)}
            async with service_of(pages, token="sekret", allow_private=True) as (service, _):
                assert await service.call("get_flight") == {"ok": True}
            trusted = (f"flights.test:{other.port}",)
            async with service_of(pages, trusted, token="sekret", allow_private=True) as (service, _):
                await service.call("get_flight")
            async with service_of(pages, ("flights.test",), token="sekret", allow_private=True) as (service, _):
                await service.call("GET", f"{other.url}/x")
    assert [request.headers.get("x-api-key") for request in other.asked] == [None, "sekret", None]


async def test_capabilities_at_private_places_are_not_called() -> None:
    async with serving(at({"/x": {"ok": True}})) as other:
        away = {**FLIGHT, "endpoint": f"{other.url}/x"}
        async with service_of({"/.well-known/ai": document(away)}) as (service, _):
            with pytest.raises(Exception, match="this machine"):
                await service.call("get_flight")
    assert other.asked == []
    away = {**FLIGHT, "endpoint": "https://metadata.test/latest"}
    async with service_of({"/.well-known/ai": document(away)}) as (service, _):
        with pytest.raises(Exception, match="link-local"):
            await service.call("get_flight")


@rows(
    "status, kind",
    (401, errors.UnauthorizedError),
    (404, errors.NotFoundError),
    (422, errors.BusinessError),
    (429, errors.RateLimitedError),
    (500, errors.ServerFaultError),
)
async def test_a_refusal_is_the_error_of_its_status(status: int, kind: type[Exception]) -> None:
    body = json.dumps({"type": "https://x.test/no-seats", "detail": "Full."}).encode()
    answer = always(status, body, Content_Type="application/problem+json")
    async with service_of(site(answer)) as (service, _):
        with pytest.raises(kind, match=r"no-seats: Full\."):
            await service.call("book_flight", flight="x")


async def test_only_reading_calls_are_retried_and_text_is_a_text() -> None:
    async with service_of(site(in_turn(always(503), always(503), always(200, {"ok": True})))) as (service, web):
        assert await service.call("get_flight", id="7") == {"ok": True}
    assert len(web.asked) == 3
    async with service_of(site(always(503))) as (service, web):
        reply = await service.request("book_flight", input={"flight": "x"}, idempotency_key="k")
    assert (reply.status, len(web.asked)) == (503, 1)
    async with service_of(site(always(200, b"a,b", Content_Type="text/csv"))) as (service, _):
        assert await service.call("get_flight", id="7") == "a,b"
    async with service_of(site(always(200, b"\x89PNG", Content_Type="image/png"))) as (service, _):
        with pytest.raises(RemoteProtocolError):
            await service.call("get_flight", id="7")


async def test_operations_of_openapi_are_called_by_their_id() -> None:
    async with service_of({"/openapi.json": OPENAPI, "/pets/3": {"name": "Rex"}}) as (service, web):
        assert await service.call("getPet", petId=3) == {"name": "Rex"}
        assert await service.call("GET", "/pets/{petId}", petId=3) == {"name": "Rex"}
        with pytest.raises(errors.InvalidInputError):
            await service.call("getPet", petId="x")
    assert len(web.asked) == 2


async def test_a_key_in_the_query_and_in_a_cookie() -> None:
    for place, sent in (("query", "/pets/3?key=sekret"), ("cookie", "/pets/3")):
        described = {
            **OPENAPI,
            "security": [{"k": []}],
            "components": {"securitySchemes": {"k": {"type": "apiKey", "in": place, "name": "key"}}},
        }
        async with service_of({"/openapi.json": described, "/pets/3": {}}, token="sekret") as (service, web):
            await service.call("getPet", petId=3)
        assert web.asked[0].target == sent
        assert web.asked[0].headers.get("cookie") == ("key=sekret" if place == "cookie" else None)


@pytest.mark.requirement("AI-3.5-2")
async def test_less_of_an_answer_is_asked_for_where_the_service_can() -> None:
    async with service_of(site(token_hints={"compact_mode": True, "field_filtering": True})) as (service, web):
        reply = await service.request("book_flight", input={"flight": "x"}, compact=True, fields=["a", "b"])
        assert reply.ok
        refused = await service.request("book_flight", input={"flight": "x"}, since="2027-01-01")
    assert web.asked[0].target == "/api/bookings?compact=true&fields=a%2Cb"
    assert refused.status == 422


async def test_capabilities_are_listed_as_for_agtp() -> None:
    async with service_of(site()) as (service, _):
        manifest = await service.discover()
        expected = ["/api/flights", "/api/flights/{id}", "/api/bookings"]
        assert [entry.path for entry in await service.methods()] == expected
        with pytest.raises(ConfigError, match="does not name an agent"):
            await service.identify()
    assert manifest.endpoint("POST", "/api/bookings") is not None


def test_nothing_is_allowed_by_default() -> None:
    options = WebOptions()
    assert (options.allow_private, options.refresh, options.trusted_hosts) == (False, False, ())
    assert options.most_capabilities == 100
