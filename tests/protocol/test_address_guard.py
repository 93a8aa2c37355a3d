"""Which addresses may be connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import smtplib
import socket
import ssl
import threading
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.web import HOST, AnyPort, always, authority, authority_file, client_tls, redirect, serving
from tests.cases import rows

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import (
    AddressGuard,
    BlockedAddress,
    BlockedAddressError,
    Origin,
    PinnedTransport,
    WebAddress,
    describe_failure,
    find_cause,
    is_loopback,
    literal_address,
    system_resolve,
    system_trust,
    trust,
    typed_host,
    what_is_private,
)

PRIVATE = [
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::"),
    *("2002:a00:1::1", "2001:0:1::1", "2001:db8::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1"),
    *("100::1", "2606:4700::5efe:10.0.0.1", "4000::1"),
]
PUBLIC = ["93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "64:ff9b::101:101"]


def test_only_a_routable_address_is_public() -> None:
    assert [text for text in PRIVATE if what_is_private(ipaddress.ip_address(text)) is None] == []
    assert [text for text in PUBLIC if what_is_private(ipaddress.ip_address(text)) is not None] == []


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_let_through(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        assert what_is_private(address) is not None


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_in_every_form(address: ipaddress.IPv4Address) -> None:
    plain = what_is_private(address)
    number = int(address)
    for form in ((0xFFFF << 32) | number, (0x64FF9B << 96) | number, (0x2002 << 112) | (number << 80)):
        assert what_is_private(ipaddress.IPv6Address(form)) == plain


@rows(
    "host, address",
    ("127.1", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"),
    ("2130706433", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("0", "0.0.0.0"),
    ("[::1]", "::1"),
    ("fe80::1%eth0", "fe80::1"),
    ("10.0.0.1.", "10.0.0.1"),
)
def test_an_address_is_known_in_every_form_a_resolver_takes(host: str, address: str) -> None:
    assert str(literal_address(host)) == address


@pytest.mark.parametrize("host", ["example.com", "1.example", "", "...", "1.2.3.4.5", "ä.example"])
def test_name_is_not_a_literal_address(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize(
    ("host", "expected"), [("localhost", True), ("LOCALHOST.", True), ("127.1", True), ("a.b", False)]
)
def test_this_machine_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def lookup(host: str, port: int) -> list[str]:
    known = {
        "public.example": ["93.184.216.34", "2606:4700:4700::1111"],
        "inside.example": ["10.0.0.1"],
        "both.example": ["93.184.216.34", "10.0.0.1"],
        "many.example": [f"93.184.216.{number}" for number in range(1, 9)],
        "none.example": [],
    }
    if host not in known:
        raise OSError(-2, "Name or service not known")
    return known[host]


pytestmark = pytest.mark.anyio


@rows(
    "host",
    *("inside.example", "both.example", "localhost", "a.localhost", "printer.local", "x.internal", "intranet"),
    "10.0.0.1",
)
async def test_a_host_in_a_private_network_is_refused(host: str) -> None:
    found = await AddressGuard(resolve=lookup).addresses(host, 443)
    assert isinstance(found, BlockedAddress)
    assert found.found


@pytest.mark.parametrize("host", ["inside.example", "INSIDE.example.", "both.example", "10.0.0.1"])
async def test_a_host_that_was_typed_may_be_anywhere(host: str) -> None:
    guard = AddressGuard(typed_host(host, 443), resolve=lookup)
    assert isinstance(await guard.addresses(host.lower().rstrip("."), 443), list)


@pytest.mark.parametrize("host", ["inside.example", "10.0.0.1", "localhost"])
async def test_another_port_of_a_private_host_is_another_service(host: str) -> None:
    guard = AddressGuard(typed_host(host, 443), resolve=lookup)
    assert isinstance(await guard.addresses(host, 9200), BlockedAddress)


async def test_public_host_gives_few_addresses_and_private_networks_can_be_allowed() -> None:
    assert await AddressGuard(allow_private=True, resolve=lookup).addresses("inside.example", 1) == ["10.0.0.1"]
    guard = AddressGuard(resolve=lookup)
    assert await guard.addresses("public.example", 443) == ["93.184.216.34", "2606:4700:4700::1111"]
    assert len(await guard.addresses("many.example", 443)) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["gone.example", "none.example"])
async def test_unresolvable_name_is_distinguished(host: str) -> None:
    found = await AddressGuard(resolve=lookup).addresses(host, 443)
    assert isinstance(found, BlockedAddress)
    assert not found.found


def test_a_name_server_that_does_not_answer_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def wait(*_: object, **__: object) -> list[object]:
        answered.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", wait)

    async def look_up() -> None:
        async with asyncio.timeout(0.01):
            await system_resolve("slow.example", 443)

    with pytest.raises(TimeoutError):
        asyncio.run(look_up())
    answered.set()


async def test_the_system_knows_this_machine() -> None:
    assert "127.0.0.1" in await system_resolve("127.0.0.1", 80)


class Rebinding:
    """A name that is public when it is looked at, and in a private network a moment later."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def pinned(*answers: list[str], hosts: tuple[str, ...] = (HOST,), keep: int = 0) -> PinnedTransport:
    return PinnedTransport(AddressGuard(AnyPort(hosts), resolve=Rebinding(*answers)), client_tls(), keep=keep)


def https(host: str, port: int, target: str = "/") -> WebAddress:
    return WebAddress(Origin("https", host, port), target)


async def test_a_name_is_resolved_once_and_connected_to_as_it_was_checked() -> None:
    names = Rebinding(["127.0.0.1"], ["192.0.2.1"])
    async with serving(always(200, {})) as web:
        transport = PinnedTransport(AddressGuard(AnyPort((HOST,)), resolve=names), client_tls(), keep=0)
        for _ in range(3):
            response = await transport.send("GET", https(HOST, web.port, "/x"), {})
            assert response.status_code == 200
            await response.aclose()
        await transport.close()
    assert names.asked == 1
    assert {asked.headers["host"] for asked in web.asked} == {f"{HOST}:{web.port}"}


async def test_blocked_address_is_not_contacted() -> None:
    transport = PinnedTransport(AddressGuard(resolve=Rebinding(["127.0.0.1"])))
    with pytest.raises(BlockedAddressError, match="which is this machine"):
        await transport.send("GET", https("evil.example", 443), {})


async def test_a_header_that_http_cannot_send_is_not_sent() -> None:
    transport = pinned(["127.0.0.1"])
    with pytest.raises(httpx.LocalProtocolError, match="HTTP cannot send"):
        await transport.send("GET", https(HOST, 443), {"X-A": "日"})


async def test_the_next_address_is_tried() -> None:
    async with serving(always(200, {})) as web:
        transport = pinned(["127.0.0.2", "127.0.0.1"])
        response = await transport.send("GET", https(HOST, web.port), {})
        await response.aclose()
        await transport.close()
    assert response.status_code == 200


async def test_two_names_at_one_address_share_no_connection() -> None:
    async with serving(always(200, {})) as web:
        transport = pinned(["127.0.0.1"], hosts=(HOST, "other.test"), keep=4)
        response = await transport.send("GET", https(HOST, web.port), {})
        await response.aread()
        with pytest.raises(httpx.ConnectError) as caught:
            await transport.send("GET", https("other.test", web.port), {})
        await transport.close()
    assert find_cause(caught.value, ssl.SSLCertVerificationError) is not None


async def test_a_target_goes_out_as_it_is_and_no_redirect_is_followed() -> None:
    async with serving(redirect("/y")) as web:
        transport = pinned(["127.0.0.1"])
        response = await transport.send("GET", https(HOST, web.port, "/a/../b%2F?c=%20"), {})
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
