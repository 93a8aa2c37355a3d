"""A posting is put into the outbox as it will be delivered."""

from __future__ import annotations

import msgspec

from bespeak.extensions.messages.posting import AT_LEAST_ONCE, TOPIC, Posting, new_posting_id, post


def test_a_posting_waits_in_the_outbox_under_its_address() -> None:
    posting = Posting("posting-1", "notification", "a" * 64, {"text": "hello"}, record_id="message-1")
    command = post("https://example.org/hook", posting, delay=5.0)
    assert (command.topic, command.recipient, command.delay) == (TOPIC, "https://example.org/hook", 5.0)
    assert msgspec.json.decode(command.payload, type=Posting) == posting


def test_a_posting_is_repeated_unless_it_says_otherwise() -> None:
    assert Posting(new_posting_id(), "report", "server", None).guarantee == AT_LEAST_ONCE


def test_two_postings_have_two_ids() -> None:
    assert new_posting_id() != new_posting_id()
