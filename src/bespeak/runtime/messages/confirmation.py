"""Confirmation of a message by its recipient; that of an alert ends its escalation (core 4.12, Tier 2 7.1)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import (
    DECLINED,
    KEPT,
    LEAST_URGENT,
    MOST_RECEIVED,
    READ,
    Confirmed,
    Message,
    decode_message,
    message_id,
    thread_of,
)
from bespeak.runtime.messages.origin import decode_origin
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.messages import (
    ACKNOWLEDGED,
    ALERT,
    MESSAGE,
    UNREAD,
    AcknowledgeAlert,
    FindMessage,
    NewMessage,
    PutMessages,
    Withdraw,
)
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record

CONFIRMATION: Final = "confirmation"
_STATES: Final = {"accepted": ACKNOWLEDGED, "rejected": DECLINED, "deferred": READ}
_ANNOUNCED: Final = ("notification", ALERT, "reply")
"""Kinds of messages whose author is told of the confirmation. An audience is not asked for it."""
_DAY: Final = 86400.0
"""Seconds for which a confirmed message is kept."""
_NOT_FOUND: Final = Refused(status.NOT_FOUND, "target-not-found", "This agent has no message with this target_id.")


async def confirm_message(call: RoutedCall, received_id: str) -> Effects | Envelope | Refused:
    """Record that the caller has received a message. To confirm it again in the same way changes nothing."""
    store = call.server.store
    assert store is not None
    given, agent_id = call.input, call.agent_id or ""
    record: Record | None = await store.read(FindMessage(received_id, agent_id))
    if record is None:
        return _NOT_FOUND
    message = decode_message(record.data)
    if record.state not in (UNREAD, READ):
        return _repeat(record, message, given)
    confirmed = Confirmed(
        given["status"], f"att-{secrets.token_hex(16)}", given.get("reason"), given.get("attestation")
    )
    state = _STATES[given["status"]]
    change = ChangeRecord(
        record.record_id,
        (MESSAGE,),
        (UNREAD, READ),
        state,
        owner=agent_id,
        data=msgspec.structs.replace(message, confirmed=confirmed).text(),
        lifetime=_DAY if state != READ else None,
    )
    commands: list[Command] = [change]
    if message.kind in _ANNOUNCED and state != READ and is_canonical_id(message.sender):
        commands.append(_tell_author(record, message, confirmed))
    if message.kind == ALERT and state == ACKNOWLEDGED and message.ref is not None:
        alert: Record | None = await store.read(FindRecord((ALERT,), message.ref))
        if alert is not None:
            origin = decode_origin(alert.data)
            commands.append(AcknowledgeAlert(alert.record_id, Withdraw(origin.later, origin.held)))

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _decided(results.details.get("state", "confirmed"))
        return _receipt(results[0], confirmed)

    return Effects(tuple(commands), tell)


def _tell_author(record: Record, message: Message, confirmed: Confirmed) -> PutMessages:
    content: dict[str, Any] = {"message_id": record.record_id, **msgspec.to_builtins(confirmed)}
    if message.ref is not None:
        content["origin_id"] = message.ref
    told = Message(
        sender=record.owner,
        kind=CONFIRMATION,
        content=content,
        urgency=LEAST_URGENT,
        in_reply_to=record.record_id,
    )
    told_id = message_id(f"{CONFIRMATION} {record.record_id}", message.sender, thread_of(record.record_id))
    new = NewMessage(told_id, message.sender, told.text(), time.time() + KEPT)
    return PutMessages((new,), most=MOST_RECEIVED, required=False)


def _repeat(record: Record, message: Message, given: dict[str, Any]) -> Envelope | Refused:
    confirmed = message.confirmed
    if confirmed is None or confirmed.status != given["status"]:
        return _decided(record.state)
    return _receipt(record, confirmed)


def _receipt(record: Record, confirmed: Confirmed) -> Envelope:
    return Envelope(
        {
            "target_id": record.record_id,
            "status": confirmed.status,
            "confirmed_at": write_instant(record.updated),
            "attestation_id": confirmed.attestation_id,
        }
    )


def _decided(state: str) -> Refused:
    return Refused(status.CONFLICT, "already-decided", f"The message is {state}; a confirmation is final.")
