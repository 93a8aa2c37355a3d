"""The pool: connections are kept, shared out, and replaced when a server closes them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.state.identity.certificates import Authority

from bespeak.agent.client.agtp_transport import InProcess, Pool, choose_tls
from bespeak.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bespeak.protocol.address import Locator
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.wire.messages import Limits

pytestmark = pytest.mark.anyio
NETWORK = Locator("rooms.acme.example")


class Fickle:
    """A server that answers `per_connection` requests on each connection and closes it at the next, or at once."""

    def __init__(self, per_connection: int, *, at_once: bool) -> None:
        self.per_connection = per_connection
        self.at_once = at_once
        self.connections = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self.per_connection):
            if not await reader.readline():
                break
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"AGTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
        if not self.at_once:
            await reader.read(1)
        writer.close()


@pytest.fixture
async def fickle() -> AsyncIterator:
    servers = []

    async def start(per_connection: int, *, at_once: bool = False) -> tuple[Fickle, Pool]:
        script = Fickle(per_connection, at_once=at_once)
        server = await asyncio.start_server(script.converse, "127.0.0.1", 0)
        pool = Pool("127.0.0.1", server.sockets[0].getsockname()[1])
        servers.append((server, pool))
        return script, pool

    yield start
    for server, pool in servers:
        await pool.close()
        server.close()


async def test_a_connection_is_kept_and_no_more_are_opened_than_the_size(serve) -> None:
    _, port = await serve()
    pool = Pool("127.0.0.1", port)
    bodies = [(await pool.request("QUERY", "/a")).body for _ in range(3)]
    assert bodies == [b"QUERY /a 0 #0", b"QUERY /a 0 #1", b"QUERY /a 0 #2"]
    await pool.close()
    server, port = await serve()
    pool = Pool("127.0.0.1", port, size=3)
    responses = await asyncio.gather(*(pool.request("QUERY", "/turn") for _ in range(50)))
    assert {response.status for response in responses} == {200}
    assert server.connections <= 3
    await pool.close()


@pytest.mark.requirement("CORE-1-16")
async def test_closing_servers_get_new_connections_but_a_fresh_failure_is_not_repeated(fickle) -> None:
    script, pool = await fickle(1, at_once=True)
    for _ in range(20):
        assert (await pool.request("QUERY", "/", retry=True)).status == 200
    assert script.connections >= 20
    script, pool = await fickle(0)
    with pytest.raises(ConnectionResetError):
        await pool.request("QUERY", "/", retry=True)
    assert script.connections == 1


@pytest.mark.requirement("CORE-1-16")
async def test_connections_closed_without_warning_are_replaced_only_when_a_repeat_does_no_harm(fickle) -> None:
    script, pool = await fickle(1)
    assert (await pool.request("QUERY", "/")).status == 200
    assert (await pool.request("QUERY", "/", retry=True)).status == 200
    assert script.connections == 2
    script, pool = await fickle(1)
    assert (await pool.request("BOOK", "/room")).status == 200
    with pytest.raises(ConnectionResetError):
        await pool.request("BOOK", "/room")
    assert script.connections == 1
    assert (await pool.request("BOOK", "/room")).status == 200


async def test_timeouts_and_other_protocols_cost_the_connection_and_not_its_place(
    serve, handler, unused_port: int
) -> None:
    _, port = await serve()
    pool = Pool("127.0.0.1", port, size=1, read_timeout=0.1)
    with pytest.raises(TimeoutError):
        await pool.request("QUERY", "/wait")
    assert (await pool.request("QUERY", "/a")).body == b"QUERY /a 0 #0"
    await pool.close()

    async def http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(http, "127.0.0.1", unused_port):
        with pytest.raises(RemoteProtocolError):
            await Pool("127.0.0.1", unused_port).request("QUERY", "/")


async def test_a_handler_answers_as_over_a_socket_and_refuses_what_cannot_be_sent(serve, handler) -> None:
    _, port = await serve()
    pool, direct = Pool("127.0.0.1", port), InProcess(handler)
    for target in ("/a?b=c", "/turn", "/big?10"):
        asked = ("QUERY", target, [("Task-ID", "t")], b"{}")
        assert await direct.request(*asked) == await pool.request(*asked)
    over_socket, in_process = handler.requests[:2]
    assert (over_socket.path, over_socket.headers) == (in_process.path, in_process.headers)
    await pool.close()
    response = await InProcess(handler, limits=Limits(body=2)).request("QUERY", "/a", body=b"123")
    assert (response.status, response.body) == (413, b"content-too-large")
    with pytest.raises(LocalProtocolError):
        await InProcess(handler).request("QUERY", "/a#b")


async def test_headers_arrive_together_and_a_block_that_breaks_the_head_is_noticed() -> None:
    class Fixed:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("Server-ID", "s")), (("Task-ID", "t"),))

    response = await InProcess(Fixed()).request("QUERY", "/")
    assert response.headers == {"server-id": "s", "task-id": "t", "content-length": "0"}

    class Broken:
        def __call__(self, request):
            return Response(200, b"", HeaderBlock(("No Name", "s")))

    with pytest.raises(RemoteProtocolError):
        await InProcess(Broken()).request("QUERY", "/")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_is_plain_unless_tls_is_asked_for(host: str) -> None:
    assert choose_tls(Locator(host)) is None
    assert choose_tls(Locator(host), tls=True) is not None


def test_tls_is_chosen_by_host_and_asked_for_by_certificates(tmp_path: Path) -> None:
    context = choose_tls(NETWORK)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert choose_tls(NETWORK, insecure=True) is None
    assert choose_tls(NETWORK, verify=False).verify_mode is ssl.CERT_NONE
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    assert choose_tls(Locator("127.0.0.1"), ca_file=file) is not None
    cert, key = Authority(tmp_path).client("agent", common="agent")
    assert choose_tls(Locator("127.0.0.1"), client_cert=cert, client_key=key) is not None
    with pytest.raises(ConfigError, match="client_cert"):
        choose_tls(Locator("127.0.0.1"), client_key=key)
    with pytest.raises(ConfigError, match=r"agent\.pem"):
        choose_tls(NETWORK, client_cert=cert)


@pytest.mark.parametrize("options", [{"tls": True}, {"ca_file": "x"}, {"client_cert": "x"}])
def test_plain_and_encrypted_at_once_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cannot be combined"):
        choose_tls(NETWORK, insecure=True, **options)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        choose_tls(NETWORK, ca_file=file)
