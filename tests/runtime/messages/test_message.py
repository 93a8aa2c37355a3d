"""Ids of messages tell their thread, and are the same for every delivery of the same thing."""

from __future__ import annotations

from bespeak.runtime.messages.message import (
    Message,
    address_messages,
    decode_message,
    is_thread,
    message_id,
    new_id,
    received_id,
    thread_of,
)

BOB, CAT = "b" * 64, "c" * 64


def test_each_recipient_of_something_has_one_id_for_it() -> None:
    alert_id = new_id("alert")
    assert message_id(alert_id, BOB) == message_id(alert_id, BOB) != message_id(alert_id, CAT)
    assert thread_of(message_id(alert_id, BOB)) == thread_of(alert_id)
    assert is_thread(thread_of(alert_id))


def test_a_recipient_names_a_message_by_its_own_id_or_that_of_what_was_sent() -> None:
    alert_id = new_id("alert")
    received = message_id(alert_id, BOB)
    assert received_id(alert_id, BOB) == received_id(received, BOB) == received
    for other in ("task-7", "conf-" + "0" * 32, "alert-xyz", f"{alert_id}%", ""):
        assert received_id(other, BOB) is None


def test_what_is_written_is_read_again() -> None:
    message = Message(sender=BOB, kind="reply", content={"a": [1, None, "\x00"]}, in_reply_to="msg-1")
    [new] = address_messages("ntf-" + "0" * 32, message, (CAT,), kept_until=2.0, at=1.0)
    assert (decode_message(new.data), new.owner, new.expires, new.at) == (message, CAT, 2.0, 1.0)
