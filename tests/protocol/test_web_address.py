"""Addresses of the web, as they may be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import (
    AddressFault,
    AddressGuard,
    AllowedHosts,
    BlockedAddress,
    Origin,
    WebAddress,
    parse_web_address,
    resolve_address,
)


@rows(
    "text, expected",
    ("https://a.example", "https://a.example/"),
    ("HTTPS://A.Example:443/x?y=1#z", "https://a.example/x?y=1"),
    ("https://a.example:8443/", "https://a.example:8443/"),
    ("https://[2606:4700::1]/x", "https://[2606:4700::1]/x"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/x"),
    ("http://localhost", "http://localhost/"),
)
def test_an_address_is_read_into_its_plain_form(text: str, expected: str) -> None:
    assert str(parse_web_address(text)) == expected


@rows(
    "text, kind",
    ("javascript:alert(1)", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("data:text/plain,x", "scheme"),
    ("ftp://a.example/", "scheme"),
    ("//a.example/", "scheme"),
    ("a.example", "scheme"),
    ("", "scheme"),
    ("https://", "address"),
    ("https://a.example:0/", "address"),
    ("https://a.example:99999/", "address"),
    ("https://a.example:x/", "address"),
    ("https://[::1/", "address"),
    ("https://a.example/\r\nHost: b", "address"),
    ("https://a.example\\@b.example/", "address"),
    ("https://a.example/ä", "address"),
    ("https://a.example/" + "x" * 3000, "address"),
    ("https://me@a.example/", "credentials"),
    ("https://me:secret@a.example/", "credentials"),
    ("http://a.example/", "plain"),
)
def test_invalid_address_is_refused(text: str, kind: str) -> None:
    found = parse_web_address(text)
    assert isinstance(found, AddressFault)
    assert found.kind == kind
    assert "secret" not in found.message


def test_plain_http_requires_insecure() -> None:
    assert isinstance(parse_web_address("http://a.example/", insecure=True), WebAddress)


@rows(
    "text, expected",
    ("/x", "https://a.example/x"),
    ("y?z=1", "https://a.example/b/y?z=1"),
    ("//c.example/x", "https://c.example/x"),
    ("https://c.example/", "https://c.example/"),
    ("../x", "https://a.example/x"),
)
def test_a_reference_starts_from_where_it_was_found(text: str, expected: str) -> None:
    base = WebAddress(Origin("https", "a.example", 443), "/b/c")
    assert str(resolve_address(text, base)) == expected


@given(st.text(max_size=60), st.sampled_from(["", "https://", "http://", "https://a.example/", "//"]))
def test_no_text_raises_and_parsing_is_idempotent(text: str, start: str) -> None:
    found = parse_web_address(start + text)
    if isinstance(found, WebAddress):
        assert parse_web_address(str(found)) == found
        assert str(found).isascii()
    resolve_address(text, WebAddress(Origin("https", "a.example", 443), "/"))


ALLOWED = AllowedHosts(("Hooks.internal", "10.1.2.3:8443", "[::1]:4480", "192.168.0.0/16", "fd00::/8"))


@rows(
    "host, port, allowed",
    ("hooks.internal", 80, True),
    ("HOOKS.internal.", 443, True),
    ("other.internal", 80, False),
    ("10.1.2.3", 8443, True),
    ("10.1.2.3", 8444, False),
    ("[::1]", 4480, True),
    ("192.168.7.7", 1, True),
    ("192.169.0.1", 1, False),
    ("fd00::1", 443, True),
)
def test_an_entry_allows_its_host_on_its_port(host: str, port: int, *, allowed: bool) -> None:
    assert ((host, port) in ALLOWED) is allowed


@pytest.mark.parametrize("entry", ["", ":80", "10.0.0.1/8", "a b", "https://host", "host:99999", "/8"])
def test_an_entry_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError):
        AllowedHosts((entry,))


@pytest.mark.anyio
async def test_a_name_may_lead_into_an_allowed_network_only_with_all_its_addresses() -> None:
    answers = [["192.168.0.9"], ["192.168.0.9", "10.0.0.1"]]

    async def resolve(_: str, __: int) -> list[str]:
        return answers.pop(0)

    guard = AddressGuard(ALLOWED, networks=ALLOWED.networks, resolve=resolve)
    assert await guard.addresses("printer.example", 443) == ["192.168.0.9"]
    assert isinstance(await guard.addresses("printer.example", 443), BlockedAddress)
