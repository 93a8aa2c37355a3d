"""Addresses as people type them."""

from __future__ import annotations

import pytest

from bespeak.errors import ConfigError
from bespeak.transports.address import Address, parse_address


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


@pytest.mark.parametrize("text", ["host:99999", "host:-1", "host:abc", "::1", "::1:80", "host:٣"])
def test_what_is_no_address_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        parse_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert Address(host, 1).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "localhost.example", ""])
def test_everything_else_is_not_loopback(host: str) -> None:
    assert not Address(host, 1).is_loopback
