"""Recipients are agents, addresses that the operator permits, or channels with subscribers."""

from __future__ import annotations

import pytest

from bespeak.extensions.messages.recipients import Recipients, as_address


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("ann@example.com", "mailto:ann@example.com"),
        ("mailto:ann@example.com", "mailto:ann@example.com"),
        ("https://user@example.com/x", "https://user@example.com/x"),
        ("on-call", "on-call"),
        ("a@b@c", "a@b@c"),
    ],
)
def test_a_mailbox_is_an_address(name: str, address: str) -> None:
    assert as_address(name) == address


def test_the_recipients_of_some_names_are_a_part_of_all() -> None:
    found = Recipients(("b" * 64,), ("mailto:a@example.com", "agtp://x.example"), ("news",), 7, {})
    assert found.count == 10
    part = found.of(["a@example.com", "news"])
    assert (part.agents, part.addresses, part.channels) == ((), ("mailto:a@example.com",), ("news",))
