"""From an address of the web to a client."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.agent.client.faces import NOTHING_KEPT, served
from tests.agent.discovery.test_lookup import AGIS, OPENAPI
from tests.agent.discovery.web import HOST, always, at, authority_file, resolve, server_tls, serving
from tests.documents.ai.test_document import FLIGHTS

import bespeak
from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import NothingDiscoveredError, UnreachableError
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web import DescribedClient, WebConnection, WebServiceClient, look_up
from bespeak.agent.client.web_options import WebOptions
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio

OPTIONS = WebOptions(cache="off", resolve=resolve)


async def client_of(pages: dict[str, Any], path: str = "") -> ServiceClient:
    with authority_file() as ca:
        async with (
            serving(at(pages)) as web,
            connect(web.url + path, ca_file=ca, web=OPTIONS) as service,
        ):
            return service


@pytest.mark.parametrize(
    ("pages", "kind"),
    [
        ({"/.well-known/ai": FLIGHTS}, WebServiceClient),
        ({"/openapi.json": OPENAPI}, WebServiceClient),
        ({"/": always(200, AGIS.encode(), Content_Type="application/yaml")}, DescribedClient),
    ],
)
async def test_discovered_document_chooses_the_client(pages: dict[str, Any], kind: type[ServiceClient]) -> None:
    service = await client_of(pages)
    assert type(service) is kind
    assert service.discovered is not None
    assert service.manifest is not None


async def test_a_face_of_agtp_is_preferred() -> None:
    async with served() as place, connect(place.uris["http"], web=NOTHING_KEPT) as service:
        assert type(service) is ServiceClient
        assert service.discovered is not None
        assert service.discovered.kind == "agtp"


async def test_a_method_of_agis_is_sent_in_a_header() -> None:
    pages = {"/": always(200, AGIS.encode(), Content_Type="application/yaml"), "/room": {"ok": True}}
    with authority_file() as ca:
        async with serving(at(pages)) as web, connect(web.url, ca_file=ca, web=OPTIONS) as service:
            assert await service.call("BOOK", "/room", room_id="1") == {"ok": True}
            asked = web.asked[-1]
    assert (asked.method, asked.target, asked.headers["x-agis-method"]) == ("POST", "/room", "BOOK")


async def test_nothing_discovered_lists_the_checked_addresses() -> None:
    with pytest.raises(NothingDiscoveredError, match=r"Checked .*/\.well-known/ai") as caught:
        await client_of({})
    assert caught.value.discovered.kind == "none"


async def test_agtp_only_service_is_named() -> None:
    with pytest.raises(NothingDiscoveredError, match=r"connect to agtp://rooms\.test"):
        await client_of({"/.well-known/agis.json": {"agis": "1.0", "agis_document": "agtp://rooms.test"}})


@pytest.mark.requirement("AI-6.4-3")
async def test_certificate_of_another_host_is_refused() -> None:
    with authority_file() as ca:
        async with serving(at({"/.well-known/ai": FLIGHTS}), tls=server_tls("other.test")) as web:
            with pytest.raises(UnreachableError, match="the certificate is not valid"):
                async with connect(web.url, ca_file=ca, web=OPTIONS):
                    pass
    assert web.asked == []


@pytest.mark.requirement("AI-6.4-4")
async def test_untrusted_certificate_is_refused() -> None:
    async with serving(at({"/.well-known/ai": FLIGHTS})) as web:
        with pytest.raises(UnreachableError, match="the certificate is not valid"):
            async with connect(web.url, web=OPTIONS):
                pass


@pytest.mark.parametrize(
    ("uri", "options", "words"),
    [
        ("http://a.example", {}, "--insecure"),
        ("https://me:pw@a.example", {}, "a user name or password"),
        ("https://a.example", {"verify": False}, "always verified"),
        ("https://a.example", {"client_key": Path("x")}, "client_cert"),
        ("https://[a.example", {}, "is not a valid address"),
        ("https://", {}, "has no host"),
    ],
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


async def test_a_service_can_be_looked_up_without_a_client() -> None:
    with authority_file() as ca:
        async with serving(at({"/.well-known/ai": FLIGHTS, "/openapi.json": OPENAPI})) as web:
            found = await look_up(web.url, WebConnection(ca_file=ca), OPTIONS)
    assert (found.kind, found.openapi, found.address.origin.host) == ("ai", None, HOST)


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
            assert service.discovered is not None
            assert service.discovered.name == "Flights"
            assert [entry.path for entry in service.methods()] == ["/api/flights"]
    finally:
        ended.set()
        thread.join()
