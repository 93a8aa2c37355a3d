"""From a URI to a service: connections, TLS, the agent at a host, and the real server."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.agent.client.scripted import AGENT, AT_ONCE, Seen, always, service_of, serving, write
from tests.service import build, echo, make_endpoint
from tests.state.identity.certificates import Authority

from bespeak.agent.client import errors
from bespeak.agent.client.connect import async_block, block, connect
from bespeak.agent.client.sender import derived_id
from bespeak.documents.projections.manifest_signature import sign_manifest
from bespeak.errors import ConfigError
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.tls import server_context
from bespeak.state.identity.jws import generate_key, public_jwk

pytestmark = pytest.mark.anyio


async def test_a_connection_is_used_again_unless_the_server_closes_it() -> None:
    async with service_of(always(200, {})) as (service, server):
        for _ in range(5):
            await service.request("BOOK", "/room")
    assert (len(server.seen), server.connections) == (5, 1)

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


@pytest.mark.requirement("CORE-10.2-1", "CORE-1-10", "CORE-3-8", "CORE-2.3-3")
async def test_an_agent_at_a_host_is_checked_first_and_requests_name_caller_and_target() -> None:
    async with (
        serving(always(200, {"agent_id": AGENT, "name": "reserver"})) as server,
        connect(f"agtp://{AGENT}@127.0.0.1:{server.port}") as service,
    ):
        await service.request("QUERY", "/rooms")
    assert [seen.line for seen in server.seen] == ["AGTP/1.0 DESCRIBE /", "AGTP/1.0 QUERY /rooms"]
    assert [seen.headers["agent-id"] for seen in server.seen] == [AGENT, AGENT]
    async with (
        serving(always(200, {"agent_id": AGENT})) as server,
        connect(f"agtp://{AGENT}@127.0.0.1:{server.port}", agent_id="cd" * 32) as service,
    ):
        await service.request("QUERY", "/rooms")
    assert [seen.headers["agent-id"] for seen in server.seen] == ["cd" * 32] * 2
    assert json.loads(server.seen[0].body) == {"agent_id": AGENT}


@pytest.mark.requirement("CORE-10.2-1")
@pytest.mark.parametrize("document", [{"agent_id": "cd" * 32}, {"methods": []}, []])
async def test_a_host_that_does_not_vouch_for_the_agent_is_rejected(document: Any) -> None:
    async with serving(always(200, document)) as server:
        with pytest.raises(errors.IdentityMismatchError):
            async with connect(f"agtp://{AGENT}@127.0.0.1:{server.port}"):
                pytest.fail("the block must not be entered")


@pytest.mark.requirement("CORE-7.3-9")
async def test_with_a_pinned_key_an_identity_counts_if_that_key_has_signed_it() -> None:
    pinned, other = generate_key(), generate_key()
    document = {"agent_id": AGENT, "name": "reserver"}
    for key, good in ((pinned, True), (other, False), (None, False)):
        signed = document if key is None else {**document, "manifest_signature": sign_manifest(document, key)}
        async with serving(always(200, signed)) as server:
            opened = connect(f"agtp://{AGENT}@127.0.0.1:{server.port}", signing_key=json.dumps(public_jwk(pinned)))
            if good:
                async with opened as service:
                    assert (await service.identify())["name"] == "reserver"
            else:
                with pytest.raises(errors.IdentityMismatchError, match="pinned key"):
                    async with opened:
                        pytest.fail("the block must not be entered")


@pytest.mark.parametrize(
    "options",
    [
        {"agent_id": "short"},
        {"agent_id": AGENT, "as_": "ann"},
        {"scopes": ["no scope"]},
        {"signing_key": "no key"},
        {"tls": True, "insecure": True},
    ],
)
async def test_options_that_cannot_work_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        async with connect("agtp://127.0.0.1:1", **options):
            pytest.fail("the block must not be entered")


async def test_a_client_for_another_agent_shares_connections_and_no_authority() -> None:
    async with (
        serving(always(200, {})) as server,
        connect(server.uri, as_="ann", scopes=["rooms:read"], token="of-ann") as ann,
    ):
        for client in (ann, ann.for_agent("bob", scopes=["rooms:write"]), ann.for_agent(agent_id=AGENT, token="own")):
            await client.request("QUERY", "/rooms")
        with pytest.raises(ConfigError, match="either as_ or agent_id"):
            ann.for_agent("bob", agent_id=AGENT)
    sent = [
        [seen.headers.get(name) for name in ("agent-id", "authority-scope", "authorization")] for seen in server.seen
    ]
    assert sent == [
        [derived_id("ann"), "rooms:read", "Bearer of-ann"],
        [derived_id("bob"), "rooms:write", None],
        [AGENT, None, "Bearer own"],
    ]
    assert server.connections == 1


def tls_server(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.requirement("CORE-1-6")
async def test_a_service_is_called_over_tls_by_the_name_of_the_host_in_the_uri(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with serving(always(200, {"secure": True}), tls_server(authority)) as server:
        async with connect(server.uri, ca_file=tmp_path / "ca.pem") as service:
            assert await service.call("QUERY", "/rooms") == {"secure": True}
        async with connect(server.uri, tls=True, verify=False) as service:
            assert await service.call("QUERY", "/rooms") == {"secure": True}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    named: list[str | None] = []
    context.sni_callback = lambda _, name, __: named.append(name)
    async with (
        serving(always(200, {}), context) as server,
        connect(f"agtp://localhost:{server.port}", ca_file=tmp_path / "ca.pem") as service,
    ):
        assert (await service.request("QUERY", "/rooms")).ok
    assert set(named) == {"localhost"}


@pytest.mark.requirement("CORE-1-4")
async def test_a_server_without_tls_1_3_is_not_talked_to(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    authority.issue_cert("127.0.0.1").configure_cert(old)
    for options in ({"ca_file": tmp_path / "ca.pem"}, {"tls": True, "verify": False}):
        async with serving(always(200, {}), old) as server, connect(server.uri, retry=AT_ONCE, **options) as service:
            with pytest.raises(errors.UnreachableError):
                await service.request("QUERY", "/rooms")
        assert server.seen == []


@pytest.mark.requirement("CORE-1-5")
async def test_certificates_of_other_hosts_and_authorities_are_refused_with_advice(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    async with (
        serving(always(200, {}), context) as server,
        connect(server.uri, ca_file=tmp_path / "ca.pem", retry=AT_ONCE) as service,
    ):
        with pytest.raises(errors.UnreachableError):
            await service.request("QUERY", "/rooms")
    assert server.seen == []
    async with serving(always(200, {}), tls_server(trustme.CA())) as server, connect(server.uri, tls=True) as service:
        with pytest.raises(errors.UnreachableError, match="ca_file"):
            await service.call("QUERY", "/rooms")
    assert server.seen == []


async def test_wrong_sides_of_tls_say_which_option_to_use() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        write(writer, 400)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        uri = f"agtp://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with connect(uri, tls=True) as service:
            with pytest.raises(errors.UnreachableError, match="insecure=True"):
                await service.call("QUERY", "/rooms")
    async with (
        serving(always(200, {}), tls_server(trustme.CA())) as server,
        connect(server.uri, retry=AT_ONCE) as service,
    ):
        with pytest.raises(errors.UnreachableError, match="tls=True"):
            await service.call("QUERY", "/rooms")


async def test_client_certificate_is_sent_or_its_absence_reported(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    context = server_context(*ours.server(), client_ca=ours.ca, required=True)
    async with serving(always(200, {}), context) as server:
        cert, key = ours.client("agent", common="agent")
        async with connect(server.uri, ca_file=ours.ca, client_cert=cert, client_key=key) as service:
            assert (await service.request("QUERY", "/rooms")).ok
        cert, key = theirs.client("agent", common="agent")
        for options in ({}, {"client_cert": cert, "client_key": key}):
            async with connect(server.uri, ca_file=ours.ca, retry=AT_ONCE, **options) as service:
                with pytest.raises(errors.UnreachableError, match="client_cert"):
                    await service.request("QUERY", "/rooms")


async def test_the_real_server_is_discovered_called_and_checked(tmp_path: Path) -> None:
    """The other tests play the server; this one shows that both sides mean the same."""
    room = {"room_id": {"type": "string"}}
    bench = build(
        make_endpoint("BOOK", "/room", echo, properties=room, required=("room_id",), scopes=("booking:room",)),
        make_endpoint("QUERY", "/rooms", echo, properties=room),
    )
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = AgtpServer(bench.dispatcher)
    for context, options in ((None, {}), (tls_server(authority), {"ca_file": tmp_path / "ca.pem"})):
        [(_, port)] = await server.start("127.0.0.1", 0, ssl=context)
        async with connect(f"agtp://127.0.0.1:{port}", agent_id=AGENT, scopes=["booking:room"], **options) as service:
            found = await service.discover()
            assert await service.discover(refresh=True) is found
            assert {entry.path for entry in await service.methods()} >= {"/room", "/rooms"}
            assert await service.call("BOOK", "/room", room_id="12") == {"room_id": "12"}
            with pytest.raises(errors.InvalidInputError) as invalid:
                await service.call("BOOK", "/room")
            assert invalid.value.violations[0].keyword == "required"
            with pytest.raises(errors.MethodViolationError):
                await service.call("BOOKK", "/room")
            with pytest.raises(errors.MethodNotAllowedError) as refused:
                await service.call("CANCEL", "/room")
            assert refused.value.allowed_methods == ("BOOK",)
            narrowed = await service.request("BOOK", "/room", {"room_id": "12"}, scopes=["other:scope"])
            assert narrowed.status == 455
    await server.close()


@pytest.mark.parametrize("size", [0, -1])
async def test_a_pool_without_connections_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match="pool_size must be at least 1"):
        async with connect("agtp://127.0.0.1", pool_size=size):
            pytest.fail("the block must not be entered")


@block
@contextmanager
def opening(name: str) -> Iterator[str]:
    yield name.upper()


@async_block
@asynccontextmanager
async def opening_later(name: str) -> AsyncIterator[str]:
    yield name.upper()


async def test_blocks_give_the_client_and_before_them_the_error_says_what_to_write() -> None:
    with opening("hotel") as client:
        assert client == "HOTEL"
    with pytest.raises(AttributeError, match=r"write `with bespeak\.connect_sync"):
        opening("hotel").call  # noqa: B018 - the attribute is the point
    with pytest.raises(AttributeError, match=r"write `async with bespeak\.connect"):
        opening_later("hotel").call  # noqa: B018
    assert not hasattr(opening("hotel"), "call")
    async with opening_later("hotel") as client:
        assert client == "HOTEL"
