"""Addresses as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.errors import ConfigError
from bespeak.protocol.address import Address, Locator, parse_address, parse_uri


@pytest.mark.requirement("CORE-1-8")
@rows(
    "text, host, port",
    ("", "127.0.0.1", 4480),
    ("0.0.0.0:9", "0.0.0.0", 9),
    ("host.example", "host.example", 4480),
    (":0", "127.0.0.1", 0),
    ("[::1]:7", "::1", 7),
    ("[::1]", "::1", 4480),
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


@rows(
    "one, other, meet",
    ("127.0.0.1:1", "127.0.0.1:1", True),
    ("127.0.0.1:1", "127.0.0.1:2", False),
    ("127.0.0.1:1", "127.0.0.2:1", False),
    ("0.0.0.0:1", "127.0.0.1:1", True),
    ("localhost:1", "127.0.0.1:1", True),
    ("[::1]:1", "127.0.0.1:1", False),
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


AGENT = "0123456789abcdef" * 4


@pytest.mark.requirement("CORE-1-8", "CORE-3-8")
@rows(
    "uri, locator",
    ("agtp://rooms.acme.example", Locator("rooms.acme.example", 4480)),
    ("agtp://rooms.acme.example/", Locator("rooms.acme.example", 4480)),
    ("agtp://127.0.0.1:4481", Locator("127.0.0.1", 4481)),
    ("agtp://[::1]", Locator("::1", 4480)),
    ("agtp://[2001:db8::7]:99", Locator("2001:db8::7", 99)),
    (f"agtp://{AGENT}@rooms.acme.example", Locator("rooms.acme.example", 4480, AGENT)),
    (f"agtp://{AGENT}@[::1]:1", Locator("::1", 1, AGENT)),
)
def test_a_uri_that_names_a_host_is_read(uri: str, locator: Locator) -> None:
    assert parse_uri(uri) == locator
    assert parse_uri(str(locator)) == locator


@pytest.mark.requirement("CORE-3-11")
@rows(
    "uri, reason",
    ("", "form"),
    ("rooms.acme.example", "form"),
    ("https://rooms.acme.example", "form"),
    ("agtp://", "form"),
    ("agtp://host/agents/reserver", "form"),
    ("agtp://host?x=1", "form"),
    ("agtp://host#x", "form"),
    ("agtp://ho st", "form"),
    ("agtp://host:", "form"),
    ("agtp://::1", "form"),
    (f"agtp://{AGENT}", "no host"),
    (f"agtp://{AGENT}:4480", "no host"),
    ("agtp://short@host", "64"),
    (f"agtp://{AGENT.upper()}@host", "64"),
    ("agtp://@host", "64"),
    ("agtp://[::zz]", "form"),
    ("agtp://[1:2]", "IPv6"),
    ("agtp://host:0", "port"),
    ("agtp://host:65536", "port"),
)
def test_any_other_uri_is_refused_with_the_reason(uri: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_uri(uri)


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_a_locator_or_a_config_error(text: str) -> None:
    for uri in (text, f"agtp://{text}"):
        try:
            locator = parse_uri(uri)
        except ConfigError:
            continue
        assert parse_uri(str(locator)) == locator
