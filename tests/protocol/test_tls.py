"""TLS 1.3 with real certificates: which peers are refused, and slow handshakes delay no others."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.state.identity.certificates import Authority

from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.faces.limits import Capacity, Timeouts
from bespeak.protocol.agtp_client_connection import AgtpClientConnection
from bespeak.protocol.tls import client_context, server_context
from bespeak.protocol.wire.messages import ResponseMessage

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


@pytest.mark.requirement("CORE-1-1")
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


@pytest.mark.requirement("CORE-10.1-1")
async def test_tls_1_2_is_refused(secure, files: Files) -> None:
    server, port = secure
    old = ssl.create_default_context(cafile=files.ca)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port, ssl=old)
    await until_empty(server)


async def test_certificate_of_an_unknown_authority_is_refused_unless_the_client_does_not_verify(secure) -> None:
    _, port = secure
    with pytest.raises(ssl.SSLCertVerificationError):
        await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context())
    assert (await ask(port, client_context(verify=False))).status == 200


@pytest.mark.requirement("CORE-10.1-2")
async def test_plain_bytes_on_a_tls_port_are_refused(secure, caplog) -> None:
    server, port = secure
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"AGTP/1.0 QUERY /\r\n\r\n")
    assert b"AGTP" not in await reader.read()
    writer.close()
    await until_empty(server)
    assert not caplog.records


async def test_slow_handshakes_delay_no_other_peer_and_time_out(serve, files: Files) -> None:
    server, port = await serve(ssl=server_context(files.cert, files.key), timeouts=Timeouts(handshake=0.5))
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    assert (await ask(port, client_context(files.ca))).status == 200
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()
    await until_empty(server)


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"])
async def test_a_reset_in_the_handshake_leaks_nothing(secure, caplog, hello: bytes) -> None:
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


async def test_over_the_limit_a_tls_peer_is_refused_with_503(serve, files: Files) -> None:
    _, port = await serve(ssl=server_context(files.cert, files.key), capacity=Capacity(1))
    kept = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    assert (await kept.request("QUERY", "/a")).status == 200
    refused = await AgtpClientConnection.open("127.0.0.1", port, ssl=client_context(files.ca))
    assert (await refused.request("QUERY", "/a")).status == 503
    assert (await kept.request("QUERY", "/a")).status == 200
    for connection in (kept, refused):
        connection.close()


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


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("key", [None, ec.generate_private_key(ec.SECP256R1())], ids=["Ed25519", "ECDSA"])
async def test_a_client_certificate_of_the_right_authority_reaches_the_handler(
    serve, handler, authority: Authority, required: bool, key: Any
) -> None:
    _, port = await serve(ssl=server_context(*authority.server(), client_ca=authority.ca, required=required))
    cert, private = authority.client("agent", key, common="agent")
    assert (await ask(port, client_context(authority.ca, cert=cert, key=private))).status == 200
    seen = handler.requests[0].connection
    assert seen.certificate == ssl.PEM_cert_to_DER_cert(cert.read_text())
    assert (seen.address, seen.secure) == ("127.0.0.1", True)
    assert seen.peer.startswith("127.0.0.1:")


@pytest.mark.parametrize("required", [False, True])
async def test_a_client_certificate_of_another_authority_ends_the_handshake(
    serve, handler, authority: Authority, tmp_path: Path, required: bool
) -> None:
    server, port = await serve(ssl=server_context(*authority.server(), client_ca=authority.ca, required=required))
    cert, key = Authority(tmp_path).client("agent", common="agent")
    with pytest.raises((OSError, RemoteProtocolError)):
        await ask(port, client_context(authority.ca, cert=cert, key=key))
    await until_empty(server)
    assert handler.requests == []


async def test_without_a_certificate_a_client_is_anonymous_or_refused(serve, handler, authority: Authority) -> None:
    _, port = await serve(ssl=server_context(*authority.server(), client_ca=authority.ca))
    assert (await ask(port, client_context(authority.ca))).status == 200
    assert handler.requests.pop().connection.certificate is None
    server, strict = await serve(ssl=server_context(*authority.server(), client_ca=authority.ca, required=True))
    with pytest.raises((OSError, RemoteProtocolError)):
        await ask(strict, client_context(authority.ca))
    await until_empty(server)
    assert handler.requests == []


async def test_a_server_that_asks_for_no_certificate_gets_none(serve, handler, authority: Authority) -> None:
    _, port = await serve(ssl=server_context(*authority.server()))
    cert, key = authority.client("agent", common="agent")
    assert (await ask(port, client_context(authority.ca, cert=cert, key=key))).status == 200
    assert handler.requests[0].connection.certificate is None


async def test_a_resumed_session_still_knows_its_certificate(serve, handler, authority: Authority) -> None:
    _, port = await serve(ssl=server_context(*authority.server(), client_ca=authority.ca, required=True))
    cert, key = authority.client("agent", common="agent")
    context = client_context(authority.ca, cert=cert, key=key)

    def converse(session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
        with (
            socket.create_connection(("127.0.0.1", port)) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as secured,
        ):
            secured.sendall(b"AGTP/1.0 QUERY /a\r\nContent-Length: 0\r\n\r\n")
            assert secured.recv(4096).startswith(b"AGTP/1.0 200")
            return secured.session, bool(secured.session_reused)

    session, _ = await asyncio.to_thread(converse, None)
    _, reused = await asyncio.to_thread(converse, session)
    assert reused
    expected = ssl.PEM_cert_to_DER_cert(cert.read_text())
    assert [request.connection.certificate for request in handler.requests] == [expected, expected]


def test_authorities_and_keys_that_cannot_be_used_are_named(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.server()
    for name, text in (("gone.pem", None), ("empty.pem", ""), ("wrong.pem", "no certificate")):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(ConfigError, match=name):
            server_context(cert, key, client_ca=tmp_path / name)
        with pytest.raises(ConfigError, match=name):
            client_context(cert=tmp_path / name, key=key)


def test_a_key_with_a_password_is_refused_without_asking_for_it(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.server()
    locked = tmp_path / "locked.pem"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    locked.write_bytes(private.private_bytes(*form, serialization.BestAvailableEncryption(b"secret")))
    with pytest.raises(ConfigError, match=r"locked\.pem is protected by a password"):
        server_context(cert, locked)


async def ask(port: int, context: ssl.SSLContext) -> ResponseMessage:
    """Send one request: a TLS 1.3 client may only learn with the first answer that it was refused."""
    connection = await AgtpClientConnection.open("127.0.0.1", port, ssl=context)
    try:
        return await connection.request("QUERY", "/a")
    finally:
        connection.close()


async def until_empty(server) -> None:
    """Let the loop run until no connection is left; the test's own timeout bounds it."""
    while server.connections:
        await asyncio.sleep(0.01)
