"""Addresses as people type them."""

from __future__ import annotations

import pytest

from bespeak.errors import ConfigError
from bespeak.protocol.address import Address, parse_address


@pytest.mark.requirement("CORE-1-8")
@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("", "127.0.0.1", 4480),
        ("0.0.0.0:9", "0.0.0.0", 9),
        ("host.example", "host.example", 4480),
        (":0", "127.0.0.1", 0),
        ("[::1]:7", "::1", 7),
        ("[::1]", "::1", 4480),
    ],
)
def test_host_and_port_have_defaults(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)


@pytest.mark.parametrize(
    "text",
    ["host:99999", "host:-1", "host:abc", "::1", "::1:80", "host:٣", "8080", "[::1", "[]:1", " ", "a b:1", "a@b"],
)
def test_an_invalid_address_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        parse_address(text)


@pytest.mark.parametrize(("text", "advice"), [("8080", "write :8080"), ("http://localhost:8080", "without a scheme")])
def test_a_frequent_mistake_gets_a_suggestion(text: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        parse_address(text)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("127.0.0.1:1", "127.0.0.1:1", True),
        ("127.0.0.1:1", "127.0.0.1:2", False),
        ("127.0.0.1:1", "127.0.0.2:1", False),
        ("0.0.0.0:1", "127.0.0.1:1", True),
        ("localhost:1", "127.0.0.1:1", True),
        ("[::1]:1", "127.0.0.1:1", False),
    ],
)
def test_addresses_meet_where_one_cannot_listen_on_both(one: str, other: str, meet: bool) -> None:
    assert parse_address(one).overlaps(parse_address(other)) is meet
    assert parse_address(other).overlaps(parse_address(one)) is meet


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert Address(host, 1).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "localhost.example", ""])
def test_everything_else_is_not_loopback(host: str) -> None:
    assert not Address(host, 1).is_loopback
