"""The client over real sockets, against scripted servers: what it sends, what it makes of answers and failures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme

from bespeak.client.connect import connect
from bespeak.client.errors import (
    AuthorityMissingError,
    BusinessError,
    CallTimeoutError,
    IdentityMismatchError,
    NoCommonCatalogError,
    NotFoundError,
    UnavailableError,
    UnreachableError,
)
from bespeak.client.inventory import InventoryEntry
from bespeak.client.retry import RetryPolicy
from bespeak.client.service import ServiceClient
from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.projections.manifest_signature import generate_key, public_jwk, sign_manifest

pytestmark = pytest.mark.anyio

AGENT = "ab" * 32
AT_ONCE = RetryPolicy(attempts=3, first_delay=0, longest_delay=0)


@dataclass
class Seen:
    """One request as the server got it."""

    line: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Seen, asyncio.StreamWriter], Awaitable[None] | None]


@dataclass
class Server:
    """A scripted AGTP server on loopback."""

    port: int
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most: int = 0

    @property
    def uri(self) -> str:
        return f"agtp://127.0.0.1:{self.port}"


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    writers: set[asyncio.StreamWriter] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.open += 1
        server.most = max(server.most, server.open)
        writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.LimitOverrunError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:-2])}
                seen = Seen(head[0], headers, await reader.readexactly(int(headers.get("content-length", "0"))))
                server.seen.append(seen)
                waiting = script(seen, writer)
                if waiting is not None:
                    await waiting
                await writer.drain()
        writer.close()
        server.open -= 1

    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    server = Server(listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
        for writer in writers:
            writer.close()


def write(writer: asyncio.StreamWriter, status: int, body: Any = None, **headers: str) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = [f"AGTP/1.0 {status} Reason", f"Content-Length: {len(content)}", *lines, "", ""]
    writer.write("\r\n".join(head).encode() + content)


def always(status: int, body: Any = None, **headers: str) -> Script:
    return lambda seen, writer: write(writer, status, body, **headers)


def in_turn(*scripts: Script) -> Script:
    """One script for each request; the last one goes on."""
    waiting = list(scripts)

    def script(seen: Seen, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])(seen, writer)

    return script


def hang_up(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.close()


@contextlib.asynccontextmanager
async def service_of(script: Script, **options: Any) -> AsyncIterator[tuple[ServiceClient, Server]]:
    async with serving(script) as server, connect(server.uri, **{"retry": AT_ONCE, **options}) as service:
        yield service, server


def endpoint(method: str, path: str, *, is_idempotent: bool) -> dict[str, Any]:
    return {
        "method": method,
        "path": path,
        "description": "Book a room.",
        "semantic": {
            "intent": "Book a room.",
            "actor": "agent",
            "outcome": "A room is booked.",
            "capability": "transaction",
            "confidence": 0.9,
            "impact": "reversible",
            "is_idempotent": is_idempotent,
        },
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object"},
        "errors": [],
        "handler": {"type": "registered_function"},
    }


def manifest(*endpoints: dict[str, Any], versions: tuple[str, ...] = ("1.0.0",), **members: Any) -> dict[str, Any]:
    return {
        "agtp_version": "1.0",
        "agtp_api_version": "1.0",
        "document_version": "v1",
        "catalog_version": versions[0],
        "catalog_versions_supported": list(versions),
        "server": {"server_id": "rooms", "operator": "Acme", "contact": "ops@acme.example", "supported_features": []},
        "embedded_methods": [],
        "endpoints": list(endpoints),
        "agent_disclosure": "public",
        "hosted_agents": [],
        "policies": {
            "wildcards_accepted": False,
            "anonymous_discovery": True,
            "scope_required_for_invocation": True,
            "synthesis_enabled": False,
            "max_synthesis_depth": 10,
        },
        **members,
    }


async def test_a_request_carries_the_agent_its_scopes_and_the_input() -> None:
    async with service_of(always(200, {"ok": True}), agent_id=AGENT, scopes=["booking:room", "a:b"]) as (
        service,
        server,
    ):
        reply = await service.request("BOOK", "/room", {"room_id": "12"}, task_id="t-1", headers={"Session-ID": "s"})
    assert reply.ok
    assert reply.json() == {"ok": True}
    seen = server.seen[0]
    assert seen.line == "AGTP/1.0 BOOK /room"
    assert seen.headers == {
        "agent-id": AGENT,
        "authority-scope": "booking:room, a:b",
        "task-id": "t-1",
        "session-id": "s",
        "content-type": "application/vnd.agtp+json",
        "content-length": str(len(seen.body)),
    }
    assert json.loads(seen.body) == {"room_id": "12"}


async def test_an_anonymous_request_without_input_carries_nothing_but_its_length() -> None:
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms")
    assert server.seen[0].headers == {"content-length": "0"}


async def test_a_request_can_narrow_scopes_and_replace_headers() -> None:
    async with service_of(always(200, {}), agent_id=AGENT, scopes=["a:b", "c:d"]) as (service, server):
        await service.request("QUERY", "/x", {}, scopes=["a:b"], headers={"agent-id": "cd" * 32})
        await service.request("QUERY", "/x", scopes=[])
    assert server.seen[0].headers["authority-scope"] == "a:b"
    assert server.seen[0].headers["agent-id"] == "cd" * 32
    assert "authority-scope" not in server.seen[1].headers


async def test_query_parameters_are_percent_encoded() -> None:
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms", query={"q": "a b&c+ü", "free": True, "n": 2})
        await service.request("QUERY", "/rooms?x=1", query={"y": "2"})
    assert server.seen[0].line == "AGTP/1.0 QUERY /rooms?q=a%20b%26c%2B%C3%BC&free=true&n=2"
    assert server.seen[1].line == "AGTP/1.0 QUERY /rooms?x=1&y=2"


async def test_request_raises_for_no_refusal() -> None:
    async with service_of(always(262, {"error": {"code": "authorization-required", "type": "scope-required"}})) as (
        service,
        _,
    ):
        reply = await service.request("BOOK", "/room")
    assert not reply.ok
    assert reply.error is not None
    assert reply.error.code == "authorization-required"


async def test_call_gives_the_output_or_raises_the_typed_error() -> None:
    refusal = {"error": {"code": "room_unavailable", "message": "Taken.", "details": {"next": 3}}}
    script = in_turn(
        always(200, {"reservation_id": "r"}), always(422, refusal), always(262, {}), always(455, {}), always(404, {})
    )
    async with service_of(script) as (service, server):
        assert await service.call("BOOK", "/room", room_id="12") == {"reservation_id": "r"}
        with pytest.raises(BusinessError, match="room_unavailable: Taken") as caught:
            await service.call("BOOK", "/room")
        for expected in (AuthorityMissingError, AuthorityMissingError, NotFoundError):
            with pytest.raises(expected):
                await service.call("BOOK", "/room")
    assert caught.value.details == {"next": 3}
    assert json.loads(server.seen[0].body) == {"room_id": "12"}


async def test_a_connection_is_used_again() -> None:
    async with service_of(always(200, {})) as (service, server):
        for _ in range(5):
            await service.request("BOOK", "/room")
    assert (len(server.seen), server.connections) == (5, 1)


async def test_a_server_that_closes_after_each_reply_is_served_as_well() -> None:
    def answer_and_close(seen: Seen, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, {})
        writer.close()

    async with service_of(answer_and_close) as (service, server):
        for _ in range(5):
            assert (await service.request("BOOK", "/room")).ok
    assert (len(server.seen), server.connections) == (5, 5)


async def test_concurrent_calls_share_at_most_the_pool() -> None:
    async with service_of(always(200, {}), pool_size=3) as (service, server):
        replies = await asyncio.gather(*(service.request("BOOK", "/room", {"n": n}) for n in range(40)))
    assert all(reply.ok for reply in replies)
    assert len(server.seen) == 40
    assert server.most <= 3


async def test_an_idempotent_request_is_sent_again_after_a_broken_connection() -> None:
    async with service_of(in_turn(hang_up, hang_up, always(200, {"found": 1}))) as (service, server):
        assert await service.call("QUERY", "/rooms") == {"found": 1}
    assert len(server.seen) >= 3


async def test_an_idempotent_request_is_sent_again_after_503_and_only_so_often() -> None:
    async with service_of(in_turn(always(503), always(200, {}))) as (service, server):
        assert await service.call("QUERY", "/rooms") == {}
    assert len(server.seen) == 2
    async with service_of(always(503)) as (service, server):
        with pytest.raises(UnavailableError):
            await service.call("QUERY", "/rooms")
    assert len(server.seen) == 3


@pytest.mark.requirement("API-7.1-7")
@pytest.mark.parametrize("script", [hang_up, always(503)])
async def test_a_request_that_acts_is_never_sent_twice(script: Script) -> None:
    async with service_of(script) as (service, server):
        with pytest.raises((UnreachableError, UnavailableError)):
            await service.call("BOOK", "/room")
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [410, 429, 455, 456, 457, 458, 500])
async def test_no_other_refusal_is_retried(status: int) -> None:
    async with service_of(always(status)) as (service, server):
        assert (await service.request("QUERY", "/rooms")).status == status
    assert len(server.seen) == 1


async def test_the_manifest_decides_what_may_be_repeated() -> None:
    document = manifest(
        endpoint("CANCEL", "/rooms/{id}", is_idempotent=True), endpoint("QUERY", "/next", is_idempotent=False)
    )
    script = in_turn(always(200, document), always(503), always(200, {}), always(503))
    async with service_of(script) as (service, server):
        await service.discover()
        assert (await service.request("CANCEL", "/rooms/12")).ok
        assert (await service.request("QUERY", "/next")).status == 503
    assert len(server.seen) == 4


async def test_a_silent_server_is_a_typed_timeout_and_the_connection_is_given_up() -> None:
    released = asyncio.Event()

    async def hang(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await released.wait()

    async with service_of(in_turn(hang, always(200, {"answer": 2})), timeout=0.3) as (service, server):
        with pytest.raises(CallTimeoutError, match="BOOK /room"):
            await service.request("BOOK", "/room")
        assert (await service.request("BOOK", "/room")).json() == {"answer": 2}
        released.set()
    assert server.connections == 2


async def test_the_deadline_holds_for_all_attempts_together() -> None:
    async with service_of(
        always(503), timeout=0.2, retry=RetryPolicy(attempts=10**9, first_delay=0, longest_delay=0)
    ) as (
        service,
        server,
    ):
        with pytest.raises(CallTimeoutError, match="QUERY /rooms"):
            await service.request("QUERY", "/rooms")
    assert len(server.seen) > 1


async def test_a_closed_port_is_a_typed_error_that_names_the_service() -> None:
    async with serving(always(200)) as server:
        pass
    async with connect(server.uri, retry=AT_ONCE) as service:
        with pytest.raises(UnreachableError, match=f"127.0.0.1:{server.port}"):
            await service.call("QUERY", "/rooms")


async def test_bytes_that_are_not_agtp_are_a_typed_error() -> None:
    def speak_http(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with service_of(speak_http) as (service, _):
        with pytest.raises(UnreachableError, match="tls=True"):
            await service.call("BOOK", "/room")


async def test_the_manifest_is_asked_for_without_an_agent_and_only_once() -> None:
    document = manifest(endpoint("BOOK", "/room", is_idempotent=False))
    async with service_of(always(200, document), agent_id=AGENT) as (service, server):
        found = await service.discover()
        assert await service.discover() is found
    assert [item.path for item in found.endpoints] == ["/room"]
    assert len(server.seen) == 1
    assert server.seen[0].line == "AGTP/1.0 DISCOVER /"
    assert "agent-id" not in server.seen[0].headers


async def test_a_refresh_is_conditional_and_304_keeps_the_manifest() -> None:
    script = in_turn(
        always(200, manifest(), ETag='"one"'),
        always(304, ETag='"one"'),
        always(200, manifest(document_version="v2"), ETag='"two"'),
        always(304),
    )
    async with service_of(script) as (service, server):
        first = await service.discover()
        assert await service.discover(refresh=True) is first
        assert (await service.discover(refresh=True)).document_version == "v2"
        await service.discover(refresh=True)
    assert [seen.headers.get("if-none-match") for seen in server.seen] == [None, '"one"', '"one"', '"two"']


async def test_a_new_api_version_makes_the_client_read_the_manifest_before_the_next_call() -> None:
    script = in_turn(
        always(200, manifest(), AGTP_API_Version="1.0"),
        always(200, {}, AGTP_API_Version="1.0"),
        always(200, {}, AGTP_API_Version="1.1"),
        always(200, manifest(document_version="v2"), AGTP_API_Version="1.1"),
        always(200, {}, AGTP_API_Version="1.1"),
    )
    async with service_of(script) as (service, server):
        await service.discover()
        for _ in range(3):
            await service.call("BOOK", "/room")
        assert service.manifest is not None
        assert service.manifest.document_version == "v2"
    assert [seen.line.split(" ")[1] for seen in server.seen] == ["DISCOVER", "BOOK", "BOOK", "DISCOVER", "BOOK"]


@pytest.mark.parametrize("body", [[], "x", None])
async def test_an_unreadable_manifest_is_a_fault_of_the_peer(body: Any) -> None:
    async with service_of(always(200, body)) as (service, _):
        with pytest.raises(RemoteProtocolError, match="manifest"):
            await service.discover()


async def test_a_refused_discovery_is_a_typed_error() -> None:
    async with service_of(always(262, {"error": {"type": "anonymous-discovery-disabled"}})) as (service, _):
        with pytest.raises(AuthorityMissingError) as caught:
            await service.discover()
    assert caught.value.condition == "anonymous-discovery-disabled"


@pytest.mark.requirement("API-8.8-2", "API-8.8-3")
async def test_an_unsigned_manifest_is_used_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with service_of(always(200, manifest())) as (service, _):
        with caplog.at_level(logging.WARNING):
            await service.discover()
            await service.discover(refresh=True)
        assert service.signature is not None
        assert service.signature.state == "absent"
    assert [record.message for record in caplog.records if "not signed" in record.message] == [
        caplog.records[0].message
    ]


@pytest.mark.requirement("API-8.8-3")
async def test_a_forged_manifest_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    forged = {**manifest(), "manifest_signature": sign_manifest({"other": 1}, generate_key())}
    async with service_of(always(200, forged)) as (service, _):
        with caplog.at_level(logging.WARNING):
            await service.discover()
        assert service.signature is not None
        assert service.signature.state == "invalid"
    assert "invalid" in caplog.text


async def test_a_signed_manifest_is_checked_against_the_pinned_key(caplog: pytest.LogCaptureFixture) -> None:
    key = generate_key()
    signed = {**manifest(), "manifest_signature": sign_manifest(manifest(), key)}
    for pinned, state, trusted in (
        (None, "valid", False),
        (json.dumps(public_jwk(key)), "valid", True),
        (json.dumps(public_jwk(generate_key())), "unknown-key", False),
    ):
        async with service_of(always(200, signed), signing_key=pinned) as (service, _):
            await service.discover()
            assert service.signature is not None
            assert (service.signature.state, service.signature.trusted) == (state, trusted)


@pytest.mark.requirement("API-4.6-1", "API-4.6-2", "API-4.6-3")
@pytest.mark.parametrize(
    ("versions", "chosen"),
    [(("1.0.0",), "1.0.0"), (("1.0.0", "1.1.0"), "1.1.0"), (("0.9.0", "1.0.0", "7.0.0"), "1.0.0")],
)
async def test_the_catalog_version_is_the_preferred_or_the_highest_common_one(
    versions: tuple[str, ...], chosen: str
) -> None:
    async with service_of(always(200, manifest(versions=versions))) as (service, _):
        await service.discover()
        assert service.catalog_version == chosen


@pytest.mark.requirement("API-4.6-4")
async def test_without_a_common_catalog_version_calls_are_given_up() -> None:
    async with service_of(always(200, manifest(versions=("9.0.0",)))) as (service, server):
        await service.discover()
        assert service.catalog_version is None
        with pytest.raises(NoCommonCatalogError, match=r"9\.0\.0"):
            await service.call("BOOK", "/room")
    assert len(server.seen) == 1


@pytest.mark.requirement("API-5.8-4")
async def test_the_inventory_is_read_in_both_forms() -> None:
    entry = {"method": "BOOK", "path": "/room", "description": "Book a room."}
    async with service_of(in_turn(always(200, [entry]), always(200, {"items": [entry]}))) as (service, server):
        assert await service.methods() == [InventoryEntry("BOOK", "/room", "Book a room.")]
        assert await service.methods() == [InventoryEntry("BOOK", "/room", "Book a room.")]
    assert server.seen[0].line == "AGTP/1.0 DISCOVER /methods"


async def test_an_agent_at_a_host_is_checked_before_anything_else() -> None:
    async with (
        serving(always(200, {"agent_id": AGENT, "name": "reserver"})) as server,
        connect(f"agtp://{AGENT}@127.0.0.1:{server.port}") as service,
    ):
        await service.request("QUERY", "/rooms")
    assert [seen.line for seen in server.seen] == ["AGTP/1.0 DESCRIBE /", "AGTP/1.0 QUERY /rooms"]
    assert [seen.headers["agent-id"] for seen in server.seen] == [AGENT, AGENT]


@pytest.mark.parametrize("document", [{"agent_id": "cd" * 32}, {"methods": []}, []])
async def test_a_host_that_does_not_vouch_for_the_agent_is_rejected(document: Any) -> None:
    async with serving(always(200, document)) as server:
        with pytest.raises(IdentityMismatchError):
            async with connect(f"agtp://{AGENT}@127.0.0.1:{server.port}"):
                pytest.fail("the block must not be entered")


async def test_a_uri_without_an_agent_has_no_identity_to_ask_for() -> None:
    async with service_of(always(200, {})) as (service, _):
        with pytest.raises(ConfigError, match="names no agent"):
            await service.identify()


@pytest.mark.parametrize(
    "options",
    [{"agent_id": "short"}, {"scopes": ["no scope"]}, {"signing_key": "no key"}, {"tls": True, "insecure": True}],
)
async def test_options_that_cannot_work_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        async with connect("agtp://127.0.0.1:1", **options):
            pytest.fail("the block must not be entered")


def tls_server(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_a_service_is_called_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with serving(always(200, {"secure": True}), tls_server(authority)) as server:
        async with connect(server.uri, ca_file=tmp_path / "ca.pem") as service:
            assert await service.call("QUERY", "/rooms") == {"secure": True}
        async with connect(server.uri, tls=True, verify=False) as service:
            assert await service.call("QUERY", "/rooms") == {"secure": True}


async def test_an_untrusted_certificate_is_refused_with_advice() -> None:
    async with serving(always(200, {}), tls_server(trustme.CA())) as server, connect(server.uri, tls=True) as service:
        with pytest.raises(UnreachableError, match="ca_file"):
            await service.call("QUERY", "/rooms")
    assert server.seen == []


async def test_tls_to_a_plain_server_says_which_option_to_use() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        write(writer, 400)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        uri = f"agtp://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with connect(uri, tls=True) as service:
            with pytest.raises(UnreachableError, match="insecure=True"):
                await service.call("QUERY", "/rooms")


async def test_plain_tcp_to_a_tls_server_says_which_option_to_use() -> None:
    async with (
        serving(always(200, {}), tls_server(trustme.CA())) as server,
        connect(server.uri, retry=AT_ONCE) as service,
    ):
        with pytest.raises(UnreachableError, match="tls=True"):
            await service.call("QUERY", "/rooms")
