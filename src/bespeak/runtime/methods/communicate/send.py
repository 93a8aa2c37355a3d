"""SEND: delivers a message outside AGTP, to a recipient that the operator lists (Tier 2 7.4)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, StepCall
from bespeak.runtime.delivery.channel import Delivered, Undeliverable
from bespeak.runtime.delivery.delivery import Delivery
from bespeak.runtime.delivery.posting import DELIVERED, FAILED, WAITING, Posting, post
from bespeak.runtime.delivery.template import fill
from bespeak.runtime.methods.needs import invalid, refuse_without_needs, too_large
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.outbox import AckOutbox
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record

KIND: Final = "delivery"
MOST: Final = 10_000
"""Messages of one agent that wait or can still be looked up."""
MOST_CONTENT: Final = 256 * 1024
"""Maximum bytes of a message."""
_KEPT: Final = 30 * 86400.0
_AT_ONCE: Final = 3.0
"""Seconds for an attempt while the caller waits."""
_HELD: Final = 10.0
"""Seconds before the message is attempted again, if this process cannot say what became of the first attempt."""
_SCHEMES: Final = {"email": "mailto:", "sms": "sms:", "push": "push:", "webhook": ""}
_SEND: Final = STANDARD["SEND"]


async def send(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer SEND /. The message is stored before the first attempt, so that it is not lost, and sent under one id."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    delivery = call.server.delivery
    address = _address(delivery, call.input["channel"], call.input["recipient"])
    if isinstance(address, Refused):
        return address
    message = _compose(call, delivery)
    if isinstance(message, Refused):
        return message
    record = await _store(call, address, message)
    if isinstance(record, Refused | Envelope):
        return record
    kept, position = record
    outcome = await delivery.try_now(address, message, _AT_ONCE)
    confirmation = dict(outcome.confirmation) if isinstance(outcome, Delivered) else None
    if confirmation is None and not isinstance(outcome, Undeliverable):
        return _answer(kept)
    data = msgspec.json.encode({**kept.content(), "confirmation": confirmation}).decode()
    state = DELIVERED if confirmation is not None else FAILED

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):  # the drain has taken it over
            return _answer(kept)
        if isinstance(outcome, Undeliverable):
            return _SEND.refuse("recipient-refused", outcome.message, delivery_id=kept.record_id)
        return _answer(results[1])

    change = ChangeRecord(kept.record_id, (KIND,), (WAITING,), state, data=data)
    return Effects((AckOutbox(position, 0), change), tell)


def _address(delivery: Delivery | None, channel: str, recipient: str) -> str | Refused:
    scheme = _SCHEMES[channel]
    if delivery is None or not delivery.is_configured or (scheme and not delivery.has(scheme[:-1])):
        message = f"This server has no channel {channel}; its operator can set one up in [delivery]."
        return _SEND.refuse("channel-not-available", message, channel=channel)
    if channel == "webhook" and not recipient.lower().startswith(("https://", "http://")):
        return _SEND.refuse("recipient-refused", "The recipient of a webhook is a web address: https://...")
    address = scheme + recipient
    domain = delivery.locate(address)
    if isinstance(domain, Undeliverable):
        return _SEND.refuse("recipient-refused", domain.message)
    if not delivery.permits(address):
        return _SEND.refuse("recipient-refused", "The operator does not list this recipient.")
    return address


def _compose(call: RoutedCall, delivery: Delivery) -> Posting | Refused:
    given = call.input
    subject, content = None, given["content"]
    if "template_id" in given:
        template = delivery.settings.templates.get(given["template_id"])
        if template is None:
            return _SEND.refuse("unknown-template", "No template has this id.")
        filled = fill(template, content)
        if isinstance(filled, str):
            return invalid("content", filled)
        subject, content = filled[0] or None, filled[1]
    elif isinstance(content, dict) and isinstance(content.get("subject"), str) and isinstance(content.get("body"), str):
        subject, content = content["subject"], content["body"] if given["channel"] == "email" else content
    if len(msgspec.json.encode(content)) > MOST_CONTENT:
        return too_large("content", MOST_CONTENT)
    delivery_id = f"delivery-{secrets.token_hex(16)}"
    return Posting(delivery_id, "message", call.agent_id or "", content, subject=subject, record_id=delivery_id)


async def _store(call: RoutedCall, address: str, message: Posting) -> tuple[Record, int] | Envelope | Refused:
    """Put the message into the outbox; or return the answer to an earlier call with the same key."""
    data = msgspec.json.encode({"channel": call.input["channel"], "recipient": call.input["recipient"]}).decode()
    key = call.request.headers.get(IDEMPOTENCY_KEY)
    if isinstance(call, StepCall) and call.journal is not None:
        key = call.journal.key
    if key is not None:
        # Of one call that is repeated after a crash: it must not be sent again under another id.
        key = hashlib.sha256(f"{call.agent_id}\n{key}\n".encode() + msgspec.json.encode(call.input)).hexdigest()
    assert message.record_id is not None
    command = PutRecord(message.record_id, KIND, message.sender, WAITING, data, key=key, lifetime=_KEPT, most=MOST)
    store = call.server.store
    assert store is not None
    done = await store.do(command, post(address, message, delay=_HELD))
    if not isinstance(done, Conflict):
        return done[0], done[1]
    if done.reason == "too-many":
        return _SEND.refuse("delivery-unavailable", f"The agent has {MOST} messages here, the maximum.")
    earlier = await store.read(FindRecord((KIND,), key=key))
    return _answer(earlier) if earlier is not None else _SEND.refuse("delivery-unavailable", "Try again later.")


def _answer(record: Record) -> Envelope:
    content = record.content()
    receipt = {
        "delivery_id": record.record_id,
        "channel": content["channel"],
        "status": DELIVERED if record.state == DELIVERED else WAITING,
        "sent_at": write_instant(record.created),
    }
    if content.get("confirmation"):
        receipt["confirmation"] = content["confirmation"]
    return Envelope(receipt)
