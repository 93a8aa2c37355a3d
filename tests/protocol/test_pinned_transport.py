"""HTTP to exactly the addresses that were checked."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from pathlib import Path

import httpx
import pytest
from tests.agent.discovery.web import HOST, AnyPort, always, authority, authority_file, client_tls, redirect, serving

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import (
    AddressGuard,
    BlockedAddressError,
    Origin,
    PinnedTransport,
    WebAddress,
    describe_failure,
    find_cause,
    system_trust,
    trust,
)

pytestmark = pytest.mark.anyio


class Rebinding:
    """A name that is public when it is looked at, and in a private network a moment later."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_a_name_is_resolved_once_and_connected_to_as_it_was_checked() -> None:
    names = Rebinding(["127.0.0.1"], ["192.0.2.1"])
    async with serving(always(200, {})) as web:
        transport = PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=names), client_tls(), keep=0)
        for _ in range(3):
            response = await transport.send("GET", WebAddress(Origin("https", HOST, web.port), "/x"), {})
            assert response.status_code == 200
            await response.aclose()
        await transport.close()
    assert names.asked == 1
    assert {asked.headers["host"] for asked in web.asked} == {f"{HOST}:{web.port}"}


async def test_blocked_address_is_not_contacted() -> None:
    transport = PinnedTransport(AddressGuard(resolve=Rebinding(["127.0.0.1"])))
    with pytest.raises(BlockedAddressError, match="which is this machine"):
        await transport.send("GET", WebAddress(Origin("https", "evil.example", 443), "/"), {})


async def test_a_header_that_http_cannot_send_is_not_sent() -> None:
    transport = PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=Rebinding(["127.0.0.1"])))
    with pytest.raises(httpx.LocalProtocolError, match="HTTP cannot send"):
        await transport.send("GET", WebAddress(Origin("https", HOST, 443), "/"), {"X-A": "日"})


async def test_the_next_address_is_tried() -> None:
    async with serving(always(200, {})) as web:
        names = Rebinding(["127.0.0.2", "127.0.0.1"])
        transport = PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=names), client_tls())
        response = await transport.send("GET", WebAddress(Origin("https", HOST, web.port), "/"), {})
        await response.aclose()
        await transport.close()
    assert response.status_code == 200


async def test_two_names_at_one_address_share_no_connection() -> None:
    async with serving(always(200, {})) as web:
        names = Rebinding(["127.0.0.1"])
        transport = PinnedTransport(AddressGuard(AnyPort((HOST, "other.test")), resolve=names), client_tls(), keep=4)
        response = await transport.send("GET", WebAddress(Origin("https", HOST, web.port), "/"), {})
        await response.aread()
        with pytest.raises(httpx.ConnectError) as caught:
            await transport.send("GET", WebAddress(Origin("https", "other.test", web.port), "/"), {})
        await transport.close()
    assert find_cause(caught.value, ssl.SSLCertVerificationError) is not None


async def test_a_target_goes_out_as_it_is_and_no_redirect_is_followed() -> None:
    async with serving(redirect("/y")) as web:
        transport = PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=Rebinding(["127.0.0.1"])), client_tls())
        response = await transport.send("GET", WebAddress(Origin("https", HOST, web.port), "/a/../b%2F?c=%20"), {})
        await response.aclose()
        await transport.close()
    assert (response.status_code, [asked.target for asked in web.asked]) == (302, ["/a/../b%2F?c=%20"])


def test_trust_is_that_of_a_file_or_of_the_system(tmp_path: Path) -> None:
    with authority_file() as file:
        assert len(trust(file).get_ca_certs()) == 1
    assert system_trust() is system_trust()
    with pytest.raises(ConfigError):
        trust(tmp_path / "none.pem")
    (tmp_path / "bad.pem").write_text("x")
    with pytest.raises(ConfigError):
        trust(cert=tmp_path / "bad.pem")


def test_a_certificate_can_be_shown(tmp_path: Path) -> None:
    pair = tmp_path / "pair.pem"
    pair.write_bytes(authority().issue_cert("agent.test").private_key_and_cert_chain_pem.bytes())
    assert isinstance(trust(cert=pair), ssl.SSLContext)


def test_a_cause_is_found_behind_others() -> None:
    inner = ConnectionRefusedError("x")
    outer = ValueError("y")
    outer.__cause__ = inner
    assert find_cause(outer, OSError) is inner
    assert find_cause(outer, KeyError) is None


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nSet-Cookie hunter2\r\n\r\n", b"hunter2: no HTTP\r\n\r\n"])
async def test_the_description_of_a_failure_has_nothing_that_the_peer_sent(answer: bytes) -> None:
    async def misbehave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(misbehave, "127.0.0.1", 0)
    async with server, httpx.AsyncClient() as client:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(httpx.TransportError) as raised:
            await client.get(f"http://127.0.0.1:{port}/")
    assert "hunter2" in str(raised.value)
    assert describe_failure(raised.value) == "RemoteProtocolError"


def test_failures_of_the_system_are_told_and_replies_of_mail_servers_are_not() -> None:
    assert describe_failure(ConnectionRefusedError(111, "Connection refused")).endswith("Connection refused")
    assert describe_failure(httpx.ConnectError("All connection attempts failed")).endswith("attempts failed")
    assert describe_failure(smtplib.SMTPDataError(554, b"ann@example.com is unknown")) == "SMTPDataError 554"
    assert describe_failure(ValueError("hunter2")) == "ValueError"
    assert len(describe_failure(OSError("x" * 5000))) < 400
