"""Which addresses may be connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.address_guard import (
    AddressGuard,
    BlockedAddress,
    is_loopback,
    literal_address,
    system_resolve,
    typed_host,
    what_is_private,
)

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:1::1",
    "2001:db8::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2606:4700::5efe:10.0.0.1",
    "4000::1",
]
PUBLIC = ["93.184.216.34", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "64:ff9b::101:101"]


@pytest.mark.parametrize("text", PRIVATE)
def test_unroutable_address_is_private(text: str) -> None:
    assert what_is_private(ipaddress.ip_address(text)) is not None


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_is_not_private(text: str) -> None:
    assert what_is_private(ipaddress.ip_address(text)) is None


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


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("10.0.0.1.", "10.0.0.1"),
    ],
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


@pytest.mark.parametrize(
    "host",
    [
        "inside.example",
        "both.example",
        "localhost",
        "a.localhost",
        "printer.local",
        "x.internal",
        "intranet",
        "10.0.0.1",
    ],
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


async def test_private_networks_can_be_allowed() -> None:
    assert await AddressGuard(allow_private=True, resolve=lookup).addresses("inside.example", 1) == ["10.0.0.1"]


async def test_a_public_host_gives_its_addresses_and_not_too_many() -> None:
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
