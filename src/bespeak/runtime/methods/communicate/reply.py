"""REPLY: answers a message of the caller's inbox, in its thread, to its author (Tier 2 7.3)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import (
    KEPT,
    MOST_CONTENT,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    USUAL,
    Message,
    decode_message,
    message_id,
    received_id,
    thread_of,
)
from bespeak.runtime.messages.origin import too_much
from bespeak.runtime.methods.needs import refuse_large, refuse_without_needs
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.messages import FindMessage, NewMessage, PutMessages
from bespeak.state.store.commands.records import Record

REPLY: Final = "reply"
_ANSWERABLE: Final = ("notification", "alert", "escalation", REPLY)
"""Kinds of messages that expect an answer. An audience is not asked for one (Tier 2 7.2)."""
_REPLY: Final = STANDARD["REPLY"]


async def reply(call: RoutedCall) -> Effects | Refused:
    """Answer REPLY /. Only the recipient of a message can reply, once; the author can reply to the reply.

    `in_reply_to` is the id of the message, or of the notification, alert or escalation: the draft's Task-ID of the
    message is chosen by its author, and does not identify it.
    """
    refused = refuse_without_needs(call) or refuse_large("content", call.input["content"], MOST_CONTENT)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, agent_id = call.input, call.agent_id or ""
    wanted = received_id(given["in_reply_to"], agent_id)
    record: Record | None = None
    if wanted is not None:
        record = await call.server.store.read(FindMessage(wanted, agent_id))
    if record is None:
        message = f"This agent has no message {given['in_reply_to'][:80]!r}; QUERY /messages lists those it has."
        return _REPLY.refuse("message-not-found", message)
    received, thread = decode_message(record.data), thread_of(record.record_id)
    if received.kind not in _ANSWERABLE or not is_canonical_id(received.sender):
        return _REPLY.refuse("reply-not-expected", f"A message of the kind {received.kind} takes no reply.")
    answer = Message(
        sender=agent_id,
        kind=REPLY,
        content=given["content"],
        urgency=given.get("urgency", USUAL),
        in_reply_to=record.record_id,
    )
    reply_id = message_id(f"{REPLY} {record.record_id}", received.sender, thread)
    now = time.time()
    sent = NewMessage(reply_id, received.sender, answer.text(), now + KEPT, sender=answer.sender)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            if results.reason == "exists":
                message = "The agent has replied to this message already."
                return _REPLY.refuse("reply-not-expected", message, reply_id=reply_id)
            return _REPLY.refuse("delivery-unavailable", too_much(results, "replies"))
        return Envelope(
            {
                "reply_id": reply_id,
                "in_reply_to": record.record_id,
                "thread_id": thread,
                "recipient": received.sender,
                "sent_at": write_instant(now),
            }
        )

    return Effects((PutMessages((sent,), most=MOST_RECEIVED, share=MOST_FROM_ONE, once=True),), tell)
