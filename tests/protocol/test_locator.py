"""URIs: the forms that name a host, and clear words for those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.errors import ConfigError
from bespeak.protocol.address import Locator, parse_uri

AGENT = "0123456789abcdef" * 4


@pytest.mark.requirement("CORE-1-8", "CORE-3-8")
@pytest.mark.parametrize(
    ("uri", "locator"),
    [
        ("agtp://rooms.acme.example", Locator("rooms.acme.example", 4480)),
        ("agtp://rooms.acme.example/", Locator("rooms.acme.example", 4480)),
        ("agtp://127.0.0.1:4481", Locator("127.0.0.1", 4481)),
        ("agtp://[::1]", Locator("::1", 4480)),
        ("agtp://[2001:db8::7]:99", Locator("2001:db8::7", 99)),
        (f"agtp://{AGENT}@rooms.acme.example", Locator("rooms.acme.example", 4480, AGENT)),
        (f"agtp://{AGENT}@[::1]:1", Locator("::1", 1, AGENT)),
    ],
)
def test_a_uri_that_names_a_host_is_read(uri: str, locator: Locator) -> None:
    assert parse_uri(uri) == locator
    assert parse_uri(str(locator)) == locator


@pytest.mark.requirement("CORE-3-11")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
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
    ],
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
