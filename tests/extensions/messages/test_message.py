"""Messages: their ids and templates, and their place in the outbox."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cases import rows

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.message import (
    KEPT,
    THREAD,
    Message,
    Origin,
    address_messages,
    decode_message,
    decode_origin,
    message_id,
    received_id,
    send,
    thread_of,
    too_much,
)
from bespeak.extensions.messages.methods_send import fill
from bespeak.extensions.messages.posting import AT_LEAST_ONCE, TOPIC, Posting, new_posting_id, post
from bespeak.extensions.messages.recipients import Recipients
from bespeak.extensions.messages.settings import TemplateSettings
from bespeak.extensions.messages.store import PutMessages, PutOutbox
from bespeak.runtime.handling import new_id, refuse_conflict
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

BOB, CAT = "b" * 64, "c" * 64


def test_each_recipient_has_one_id_and_names_a_message_by_it_or_that_of_what_was_sent() -> None:
    alert_id = new_id("alert")
    assert message_id(alert_id, BOB) == message_id(alert_id, BOB) != message_id(alert_id, CAT)
    assert thread_of(message_id(alert_id, BOB)) == thread_of(alert_id)
    assert THREAD.fullmatch(thread_of(alert_id))
    received = message_id(alert_id, BOB)
    assert received_id(alert_id, BOB) == received_id(received, BOB) == received
    for other in ("task-7", "conf-" + "0" * 32, "alert-xyz", f"{alert_id}%", ""):
        assert received_id(other, BOB) is None


def test_what_is_written_is_read_again() -> None:
    message = Message(sender=BOB, kind="reply", content={"a": [1, None, "\x00"]}, in_reply_to="msg-1")
    [new] = address_messages("ntf-" + "0" * 32, message, (CAT,), kept_until=2.0, at=1.0)
    assert (decode_message(new.data), new.owner, new.expires, new.at) == (message, CAT, 2.0, 1.0)


ANN, ORIGIN_BOB, ORIGIN_CAT = "a" * 64, "b" * 64, "c" * 64
ORIGIN = Origin(sender=ANN, kind="broadcast", content="x" * 1000, expires=60.0)


def test_messages_refer_to_the_content() -> None:
    found = Recipients((ORIGIN_BOB, ORIGIN_CAT), ("agtp://x.example",), ("news",), 2, {})
    record, messages, posting = send("brd-" + "0" * 32, "broadcast", ORIGIN, found, 10.0)
    assert isinstance(record, PutRecord)
    assert (record.delay, [one.channel for one in decode_origin(record.data).pending]) == (0.0, ["news"])
    assert isinstance(messages, PutMessages)
    assert {(one.owner, one.expires) for one in messages.messages} == {(ORIGIN_BOB, 60.0), (ORIGIN_CAT, 60.0)}
    assert all("xxx" not in one.data and record.record_id in one.data for one in messages.messages)
    assert isinstance(posting, PutOutbox)
    assert msgspec.json.decode(posting.payload)["expires"] == pytest.approx(60.0)


def test_the_content_is_kept_as_long_as_the_messages() -> None:
    found = Recipients((ORIGIN_BOB,), (), (), 0, {})
    origin = msgspec.structs.replace(ORIGIN, expires=10.0 + 2 * KEPT)
    record, messages = send("brd-" + "0" * 32, "broadcast", origin, found, 10.0)
    assert isinstance(record, PutRecord)
    assert isinstance(messages, PutMessages)
    assert record.lifetime == 2 * KEPT
    assert messages.messages[0].expires == origin.expires


def test_two_who_share_an_address_get_different_postings() -> None:
    made = [
        ORIGIN.posting("brd-1", "agtp://x.example", recipient=agent) for agent in (ORIGIN_BOB, ORIGIN_CAT, ORIGIN_BOB)
    ]
    ids = [msgspec.json.decode(posting.payload)["posting_id"] for posting in made]
    assert ids[0] == ids[2] != ids[1]


def test_the_limit_that_was_reached_is_named() -> None:
    conflicts = too_much(STANDARD["ALERT"], "alerts")
    assert "sent 5 alerts" in refuse_conflict(Conflict("too-many", {"most": 5}), conflicts).message
    assert "no room" in refuse_conflict(Conflict("inbox-full"), conflicts).message


TEMPLATE = TemplateSettings(subject="Room $room", body="Dear ${guest}, you owe $$$sum.")


def test_variables_are_filled_in_and_others_are_ignored() -> None:
    filled = fill(TEMPLATE, {"room": 12, "guest": "$room {guest.__class__}", "sum": 7.5, "more": {}})
    assert filled == ("Room 12", "Dear $room {guest.__class__}, you owe $7.5.")


@rows(
    "values, fault",
    ("text", "must be an object"),
    ({"room": 1}, "lacks guest, sum"),
    ({"room": 1, "guest": None, "sum": []}, "for guest, sum"),
    ({"room": "x" * 200_000, "guest": "a", "sum": 1}, "more than 256 KiB"),
)
def test_values_that_do_not_fit_are_refused(values: Any, fault: str) -> None:
    filled = fill(TEMPLATE, values)
    assert isinstance(filled, str)
    assert fault in filled


def test_a_posting_waits_under_its_address_with_an_id_of_its_own_and_is_repeated() -> None:
    posting = Posting("posting-1", "notification", "a" * 64, {"text": "hello"}, record_id="message-1")
    command = post("https://example.org/hook", posting, delay=5.0)
    assert (command.topic, command.recipient, command.delay) == (TOPIC, "https://example.org/hook", 5.0)
    assert msgspec.json.decode(command.payload, type=Posting) == posting
    assert Posting(new_posting_id(), "report", "server", None).guarantee == AT_LEAST_ONCE
    assert new_posting_id() != new_posting_id()
