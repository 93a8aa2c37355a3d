"""The inbox of an agent: QUERY /messages, and REPLY and CONFIRM of a message (core 4.12, Tier 2 7.1, 7.3)."""

from __future__ import annotations

import re
import time
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages import store as commands
from bespeak.extensions.messages.delegations import DELEGATION, OPEN, answer_offer, end_by_reply, find_offered
from bespeak.extensions.messages.message import (
    MOST_CONTENT,
    NOTIFICATION,
    THREAD,
    USUAL,
    Confirmed,
    Message,
    decode_message,
    decode_origin,
    put_messages,
    received_id,
    thread_of,
    too_much,
)
from bespeak.extensions.messages.store import ACKNOWLEDGED, ALERT, READ, UNREAD, FindMessage
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import check_content, effects, invalid, new_id, refusal, stateful, to_json
from bespeak.runtime.methods.cases import CASES
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.store import Command, Conflict, Steps

_MOST_BYTES: Final = 1024 * 1024  # bytes of a page that has more than one message
_CURSOR: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)~([!-~]{1,128})")
_FIRST: Final = "0~-"  # cursor of the first page


@stateful
async def messages(call: RoutedCall) -> Envelope:
    """Answer QUERY /messages. Reading changes nothing, so that an answer that is lost loses no message."""
    given, limit = call.input, call.input.get("limit", 20)
    cursor = _CURSOR.fullmatch(given.get("after", _FIRST))
    if cursor is None:
        raise invalid("after", "is not a cursor; send what `next` of the previous page says.")
    thread = given.get("thread_id")
    if thread is not None and not THREAD.fullmatch(thread):
        return Envelope({"messages": []})
    owner = commands.channel_inbox(given["channel"]) if "channel" in given else call.agent_id or ""
    prefix = "" if thread is None else f"msg-{thread}-"
    # One more than asked for tells whether there is another page.
    query = commands.ListMessages(owner, given.get("state"), prefix, (float(cursor[1]), cursor[2]), limit + 1)
    found: list[tuple[Record, str | None]] = await call.store.read(query)
    page: list[dict[str, Any]] = []
    size = 0
    for record, origin in found[:limit]:
        size += len(origin or record.data)
        if page and size > _MOST_BYTES:
            break
        page.append(show_message(record, origin))
    result: dict[str, Any] = {"messages": page}
    if len(page) < len(found):
        last = found[len(page) - 1][0]
        result["next"] = f"{last.created!r}~{last.record_id}"
    return Envelope(result)


def show_message(record: Record, origin: str | None) -> dict[str, Any]:
    message, sent = decode_message(record.data), None if origin is None else decode_origin(origin)
    shown: dict[str, Any] = {
        "message_id": record.record_id,
        "thread_id": thread_of(record.record_id),
        "kind": message.kind,
        "sender": message.sender,
        "urgency": message.urgency,
        "state": record.state,
        "sent_at": write_instant(record.created),
        "content": message.content if sent is None else sent.content,
    }
    more = {
        "origin_id": None if sent is None else message.ref,
        "format": None if sent is None else sent.format,
        "expires_at": None if message.expires is None else write_instant(message.expires),
        "confirmed": msgspec.to_builtins(message.confirmed),
        "in_reply_to": message.in_reply_to,
        "channel": message.channel,
    }
    return shown | {name: value for name, value in more.items() if value is not None}


REPLY: Final = "reply"
_ANSWERABLE: Final = ("notification", "alert", "escalation", REPLY, DELEGATION)
"""Kinds of messages that expect an answer. An audience is not asked for one (Tier 2 7.2)."""
_REPLY: Final = STANDARD["REPLY"]


@stateful
async def reply(call: RoutedCall) -> Effects:
    """Answer REPLY /. Only the recipient of a message can reply, once; the author can reply to the reply.

    `in_reply_to` is the id of the message, or of the notification, alert or escalation: the draft's Task-ID of the
    message is chosen by its author, and does not identify it.
    """
    store, given, agent_id = call.store, call.input, call.agent_id or ""
    check_content(given, "content", MOST_CONTENT)
    named = received_id(given["in_reply_to"], agent_id)
    record: Record | None = None if named is None else await store.read(FindMessage(named, agent_id))
    if record is None:
        message = f"This agent has no message {given['in_reply_to'][:80]!r}; QUERY /messages lists those it has."
        raise refusal(_REPLY, "message-not-found", message)
    received = decode_message(record.data)
    if received.kind not in _ANSWERABLE or not is_canonical_id(received.sender):
        raise refusal(_REPLY, "reply-not-expected", f"A message of the kind {received.kind} takes no reply.")
    ending: tuple[Command, ...] = ()
    if received.kind == DELEGATION:
        delegated: Record | None = await store.read(find_offered(record))
        if delegated is None or delegated.state not in OPEN:
            state = "unknown" if delegated is None else delegated.state
            raise refusal(_REPLY, "reply-not-expected", f"The delegation is {state}, so no result is awaited.")
        ending = (end_by_reply(delegated, call.routes.service.identity.server_id, given["content"]),)
    content, urgency, now = given["content"], given.get("urgency", USUAL), time.time()
    answer = Message(sender=agent_id, kind=REPLY, content=content, urgency=urgency, in_reply_to=record.record_id)
    sent = put_messages(f"{REPLY} {record.record_id}", answer, (received.sender,), once=True)
    reply_id = sent.messages[0].record_id
    result = {
        "reply_id": reply_id,
        "in_reply_to": record.record_id,
        "thread_id": thread_of(reply_id),
        "recipient": received.sender,
        "sent_at": write_instant(now),
    }
    repeated = "The agent has replied to this message already."
    over = _REPLY.refuse("reply-not-expected", "The delegation has ended meanwhile, so no result is awaited.")
    again = _REPLY.refuse("reply-not-expected", repeated, reply_id=reply_id)
    conflicts = {**too_much(_REPLY, "replies"), "state": over, "exists": again}
    return effects([sent, *ending], lambda _: result, conflicts)


_STATES: Final = {"accepted": ACKNOWLEDGED, "rejected": commands.DECLINED, "deferred": READ}
_ANNOUNCED: Final = ("notification", ALERT, "reply", DELEGATION)
"""Kinds of messages whose author is told of the confirmation. An audience is not asked for it."""
_DAY: Final = 86400.0  # seconds for which a confirmed message is kept


def confirm_received(call: RoutedCall) -> Coroutine[Any, Any, Effects] | None:
    """Answer CONFIRM / of a message that the caller has received; return None for any other target."""
    target = call.input["target_id"]
    received = None if target.startswith(CASES) else received_id(target, call.agent_id or "")
    return None if received is None else confirm_message(call, received)


async def confirm_message(call: RoutedCall, received_id: str) -> Effects:
    """Record that the caller has received a message. To confirm it again in the same way changes nothing."""
    given = call.input
    confirmed = Confirmed(given["status"], new_id("att"), given.get("reason"), given.get("attestation"))
    server_id = call.routes.service.identity.server_id
    unknown = Refused(status.NOT_FOUND, "target-not-found", "This agent has no message with this target_id.")
    return effects(
        [ConfirmMessage(received_id, call.agent_id or "", confirmed, server_id)],
        lambda results: _receipt(results[0]),
        {"not-found": unknown, "": _decided},
    )


class ConfirmMessage(Command, frozen=True):
    """Confirm a message of its recipient, tell its author, and carry out what follows from it."""

    guards: ClassVar[bool] = True
    message_id: str
    owner: str
    confirmed: Confirmed
    server_id: str

    def steps(self) -> Steps:
        """Return the Record of the message, or a Conflict: not-found; state with the state."""
        record: Record | None = yield from FindMessage(self.message_id, self.owner).steps()
        if record is None:
            return Conflict("not-found")
        message, state = decode_message(record.data), _STATES[self.confirmed.status]
        if record.state not in (UNREAD, READ):
            same = message.confirmed is not None and message.confirmed.status == self.confirmed.status
            return record if same else Conflict("state", {"state": record.state})
        done = yield from ChangeRecord(
            *(record.record_id, (commands.MESSAGE,), (UNREAD, READ), state, record.owner),
            data=to_json(msgspec.structs.replace(message, confirmed=self.confirmed)),
            lifetime=_DAY if state != READ else None,
        ).steps()
        if isinstance(done, Conflict) or state == READ:
            return done
        if message.kind in _ANNOUNCED and is_canonical_id(message.sender):
            yield from _tell_author(record, message, self.confirmed).steps()
        if message.kind == DELEGATION:
            delegated = yield from find_offered(record).steps()
            answered = None if delegated is None else answer_offer(delegated, self.server_id, state == ACKNOWLEDGED)
            conflict = None if answered is None else (yield from answered.steps())
            return conflict if isinstance(conflict, Conflict) else done
        if message.kind in (ALERT, NOTIFICATION) and state == ACKNOWLEDGED and message.ref is not None:
            sent: Record | None = yield from FindRecord((message.kind,), message.ref).steps()
            if sent is not None:
                origin = msgspec.structs.replace(decode_origin(sent.data), acknowledged_by=record.owner)
                withdrawn = commands.Withdraw(origin.later, origin.held)
                yield from commands.AcknowledgeAlert(sent.record_id, origin.text(), withdrawn).steps()
        return done


def _tell_author(record: Record, message: Message, confirmed: Confirmed) -> Command:
    content: dict[str, Any] = {"message_id": record.record_id, **msgspec.to_builtins(confirmed)}
    if message.ref is not None:
        content["origin_id"] = message.ref
    more: dict[str, Any] = {"urgency": "background", "in_reply_to": record.record_id}
    told = Message(sender=record.owner, kind="confirmation", content=content, **more)
    return put_messages(
        f"confirmation {record.record_id}", told, (message.sender,), subscribed=True, share=None, required=False
    )


def _receipt(record: Record) -> dict[str, Any]:
    confirmed = decode_message(record.data).confirmed
    assert confirmed is not None, "the message has been confirmed"
    told = {"target_id": record.record_id, "status": confirmed.status}
    return {**told, "confirmed_at": write_instant(record.updated), "attestation_id": confirmed.attestation_id}


def _decided(found: Mapping[str, Any]) -> Refused:
    state = found.get("state", "confirmed")
    return Refused(status.CONFLICT, "already-decided", f"The message is {state}; a confirmation is final.")
