"""TLS 1.3 with real certificates: who is refused, and that a slow handshake is nobody else's problem."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from pathlib import Path

import pytest
import trustme

from bespeak.errors import ConfigError
from bespeak.transports.agtp_client_connection import AgtpClientConnection
from bespeak.transports.timeouts import Timeouts
from bespeak.transports.tls import client_context, server_context

pytestmark = pytest.mark.anyio


class Files:
    def __init__(self, folder: Path) -> None:
        authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        issued = authority.issue_cert("127.0.0.1", key_type=trustme.KeyType.ECDSA)
        self.cert, self.key, self.ca = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
        issued.private_key_pem.write_to_path(self.key)
        issued.cert_chain_pems[0].write_to_path(self.cert)
        authority.cert_pem.write_to_path(self.ca)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def secure(serve, files: Files):
    return await serve(ssl=server_context(files.cert, files.key))


async def test_a_request_over_tls_1_3(secure, files: Files, handler) -> None:
    _, port = secure
    connection = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    assert (await connection.request("QUERY", "/a", body=b"x" * 300_000)).body == b"QUERY /a 300000 #0"
    connection.close()
    assert handler.requests[0].connection.secure


async def test_alpn_agtp_is_chosen_when_offered_and_not_required(secure, files: Files) -> None:
    _, port = secure
    offering = client_context(files.ca)
    silent = ssl.create_default_context(cafile=files.ca)
    other = ssl.create_default_context(cafile=files.ca)
    other.set_alpn_protocols(["h2"])
    chosen = []
    for context in (offering, silent, other):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        chosen.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()
        await writer.wait_closed()
    assert chosen == ["agtp", None, None]


async def test_tls_1_2_is_refused(secure, files: Files) -> None:
    server, port = secure
    old = ssl.create_default_context(cafile=files.ca)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port, ssl=old)
    await until_empty(server)


async def test_a_certificate_of_an_unknown_authority_is_refused_by_the_client(secure) -> None:
    _, port = secure
    with pytest.raises(ssl.SSLCertVerificationError):
        await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context())


async def test_a_client_may_choose_not_to_verify(secure) -> None:
    _, port = secure
    connection = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(verify=False))
    assert (await connection.request("QUERY", "/a")).status == 200
    connection.close()


async def test_plain_bytes_on_a_tls_port_are_refused(secure, caplog) -> None:
    server, port = secure
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"AGTP/1.0 QUERY /\r\n\r\n")
    assert b"AGTP" not in await reader.read()
    writer.close()
    await until_empty(server)
    assert not caplog.records


async def test_slow_handshakes_delay_nobody_and_end_in_time(serve, files: Files) -> None:
    server, port = await serve(ssl=server_context(files.cert, files.key), timeouts=Timeouts(handshake=0.5))
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    connection = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    assert (await connection.request("QUERY", "/a")).status == 200
    connection.close()
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()
    await until_empty(server)


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"])
async def test_a_reset_in_the_handshake_leaves_nothing_behind(secure, caplog, hello: bytes) -> None:
    server, port = secure
    raw = socket.create_connection(("127.0.0.1", port))
    raw.sendall(hello)
    while not server.connections:
        await asyncio.sleep(0.01)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()
    await until_empty(server)
    assert not caplog.records


async def test_a_malformed_request_over_tls_is_answered(secure, files: Files) -> None:
    server, port = secure
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(files.ca))
    writer.write(b"nonsense\r\n\r\n")
    assert (await reader.readline()) == b"AGTP/1.0 400 Bad Request\r\n"
    writer.close()
    await until_empty(server)


async def test_over_the_cap_a_tls_peer_is_closed_before_the_handshake(serve, files: Files) -> None:
    _, port = await serve(ssl=server_context(files.cert, files.key), max_connections=1)
    kept = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    assert (await kept.request("QUERY", "/a")).status == 200
    with pytest.raises(OSError):
        await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    kept.close()


async def test_closing_during_a_handshake_ends_it(serve, files: Files) -> None:
    server, port = await serve(ssl=server_context(files.cert, files.key))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not server.connections:
        await asyncio.sleep(0.01)
    await server.close()
    assert await reader.read() == b""
    writer.close()


def test_a_missing_certificate_or_a_foreign_key_is_a_clear_error(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        server_context(tmp_path / "nowhere.pem")
    other = tmp_path / "other.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(other)
    with pytest.raises(ConfigError, match=r"other\.pem"):
        server_context(files.cert, other)
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        client_context(tmp_path / "nowhere.pem")


async def until_empty(server) -> None:
    """Let the loop run until no connection is left; the test's own timeout bounds it."""
    while server.connections:
        await asyncio.sleep(0.01)
