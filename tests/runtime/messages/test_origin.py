"""What is sent to many is stored once, and each address gets a posting of its own."""

from __future__ import annotations

import msgspec
import pytest

from bespeak.runtime.messages.message import KEPT, Origin, decode_origin, send, too_much
from bespeak.runtime.messages.recipients import Recipients
from bespeak.state.store.commands.messages import PutMessages, PutOutbox
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Conflict

ANN, BOB, CAT = "a" * 64, "b" * 64, "c" * 64
ORIGIN = Origin(sender=ANN, kind="broadcast", content="x" * 1000, expires=60.0)


def test_messages_refer_to_the_content() -> None:
    found = Recipients((BOB, CAT), ("agtp://x.example",), ("news",), 2, {})
    record, messages, posting = send("brd-" + "0" * 32, "broadcast", ORIGIN, found, 10.0)
    assert isinstance(record, PutRecord)
    assert (record.delay, [one.channel for one in decode_origin(record.data).pending]) == (0.0, ["news"])
    assert isinstance(messages, PutMessages)
    assert {(one.owner, one.expires) for one in messages.messages} == {(BOB, 60.0), (CAT, 60.0)}
    assert all("xxx" not in one.data and record.record_id in one.data for one in messages.messages)
    assert isinstance(posting, PutOutbox)
    assert msgspec.json.decode(posting.payload)["expires"] == pytest.approx(60.0)


def test_the_content_is_kept_as_long_as_the_messages() -> None:
    found = Recipients((BOB,), (), (), 0, {})
    origin = msgspec.structs.replace(ORIGIN, expires=10.0 + 2 * KEPT)
    record, messages = send("brd-" + "0" * 32, "broadcast", origin, found, 10.0)
    assert isinstance(record, PutRecord)
    assert isinstance(messages, PutMessages)
    assert record.lifetime == 2 * KEPT
    assert messages.messages[0].expires == origin.expires


def test_two_who_share_an_address_get_different_postings() -> None:
    made = [ORIGIN.posting("brd-1", "agtp://x.example", recipient=agent) for agent in (BOB, CAT, BOB)]
    ids = [msgspec.json.decode(posting.payload)["posting_id"] for posting in made]
    assert ids[0] == ids[2] != ids[1]


def test_the_limit_that_was_reached_is_named() -> None:
    assert "sent 5 alerts" in too_much(Conflict("too-many", {"most": 5}), "alerts")
    assert "no room" in too_much(Conflict("inbox-full"), "alerts")
