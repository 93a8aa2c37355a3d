"""NOTIFY and SEND: one message for one recipient. SEND delivers it outside AGTP (core 4.12, Tier 2 7.4)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, Final

import msgspec

from bespeak.contract.standard.definition import NOT_LISTED
from bespeak.contract.standard.floor import FLOOR
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.delivery import Delivery
from bespeak.extensions.messages.message import EXACTLY_ONCE, KEPT, NOTIFICATION, USUAL, Origin, put_messages, too_much
from bespeak.extensions.messages.message import MOST_CONTENT as MOST_MESSAGE
from bespeak.extensions.messages.message import send as send_to
from bespeak.extensions.messages.posting import AT_LEAST_ONCE, DELIVERED, FAILED, WAITING, Posting, post
from bespeak.extensions.messages.recipients import Recipients, answer_challenge, find_recipients
from bespeak.extensions.messages.settings import TemplateSettings
from bespeak.extensions.messages.store import AckOutbox
from bespeak.extensions.messages.transports import Delivered, Undeliverable
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import JoinedCall, RoutedCall, StepCall
from bespeak.runtime.extension import CANCEL
from bespeak.runtime.handling import (
    RefusedError,
    check_content,
    check_size,
    effects,
    invalid,
    new_id,
    read_future,
    refusal,
    stateful,
    to_json,
)
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.store import Command, Conflict

MOST_CONTENT: Final = 256 * 1024  # maximum bytes of a message


def fill(template: TemplateSettings, values: Any) -> tuple[str, str] | str:
    """Return the subject and the body with the values of their variables, or what is wrong with the values."""
    if not isinstance(values, dict):
        return "must be an object with the variables of the template."
    subject, body = Template(template.subject), Template(template.body)
    wanted = sorted({*subject.get_identifiers(), *body.get_identifiers()})
    missing = [name for name in wanted if name not in values]
    if missing:
        return f"lacks {', '.join(missing)}, which the template needs."
    wrong = [name for name in wanted if isinstance(values[name], dict | list) or values[name] is None]
    if wrong:
        return f"must have a text or a number for {', '.join(wrong)}."
    # A text that is used often must not become larger than any message may be.
    size = sum(len(str(values[name])) * (template.subject + template.body).count("$") for name in wanted)
    if size + len(template.body) > MOST_CONTENT:
        return f"makes a message of more than {MOST_CONTENT // 1024} KiB."
    texts = {name: str(values[name]) for name in wanted}
    return subject.substitute(texts), body.substitute(texts)


DELIVERY: Final = "delivery"
MOST: Final = 10_000  # messages of one agent that wait or can still be looked up
_AT_ONCE: Final = 3.0  # seconds for an attempt while the caller waits
_HELD: Final = 10.0  # seconds before a second attempt, if it is not known what became of the first
_SCHEMES: Final = {"email": "mailto:", "sms": "sms:", "push": "push:", "webhook": ""}
_FULL: Final = f"The agent has {MOST} messages here, the maximum."
_SEND: Final = STANDARD["SEND"]


@stateful
async def send(call: RoutedCall) -> Effects | Envelope:
    """Answer SEND /. The message is stored before the first attempt, so that it is not lost, and sent under one id."""
    delivery = call.server.part("delivery")
    address = _address(delivery, call.input["channel"], call.input["recipient"])
    message = _compose(call, delivery)
    if isinstance(call, JoinedCall):  # its call commits; the outbox sends it then
        commands = [_record(call, message), post(address, message)]
        return effects(commands, lambda results: _answer(results[0]), _SEND.refuse("delivery-unavailable", _FULL))
    stored = await _store(call, address, message)
    if isinstance(stored, Envelope):
        return stored
    kept, position = stored
    outcome = await delivery.try_now(address, message, _AT_ONCE)
    confirmation = dict(outcome.confirmation) if isinstance(outcome, Delivered) else None
    if confirmation is None and not isinstance(outcome, Undeliverable):
        return _answer(kept)
    data = to_json({**kept.content(), "confirmation": confirmation})
    state = DELIVERED if confirmation is not None else FAILED

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):  # the drain has taken it over
            return _answer(kept)
        if isinstance(outcome, Undeliverable):
            return _SEND.refuse("recipient-refused", outcome.message, delivery_id=kept.record_id)
        return _answer(results[1])

    change = ChangeRecord(kept.record_id, (DELIVERY,), (WAITING,), state, data=data)
    return Effects((AckOutbox(position, 0), change), tell)


def _address(delivery: Delivery | None, channel: str, recipient: str) -> str:
    scheme = _SCHEMES[channel]
    if delivery is None or not delivery.is_configured or (scheme and not delivery.has(scheme[:-1])):
        message = f"This server has no channel {channel}; its operator can set one up in [delivery]."
        raise refusal(_SEND, "channel-not-available", message, channel=channel)
    if channel == "webhook" and not recipient.lower().startswith(("https://", "http://")):
        raise refusal(_SEND, "recipient-refused", "The recipient of a webhook is a web address: https://...")
    address = scheme + recipient
    domain = delivery.locate(address)
    if isinstance(domain, Undeliverable):
        raise refusal(_SEND, "recipient-refused", domain.message)
    if not delivery.permits(address):
        raise refusal(_SEND, NOT_LISTED.name, "The operator does not list this recipient.", field="/recipient")
    return address


def _compose(call: RoutedCall, delivery: Delivery) -> Posting:
    given = call.input
    subject, content = None, given["content"]
    if "template_id" in given:
        template = delivery.settings.templates.get(given["template_id"])
        if template is None:
            raise refusal(_SEND, "unknown-template", "No template has this id.")
        filled = fill(template, content)
        if isinstance(filled, str):
            raise invalid("content", filled)
        subject, content = filled[0] or None, filled[1]
    elif isinstance(content, dict) and isinstance(content.get("subject"), str) and isinstance(content.get("body"), str):
        subject, content = content["subject"], content["body"] if given["channel"] == "email" else content
    check_size("content", len(msgspec.json.encode(content)), MOST_CONTENT)
    delivery_id = new_id(DELIVERY)
    return Posting(delivery_id, "message", call.agent_id or "", content, subject=subject, record_id=delivery_id)


async def _store(call: RoutedCall, address: str, message: Posting) -> tuple[Record, int] | Envelope:
    """Put the message into the outbox; or return the answer to an earlier call with the same key."""
    key = call.request.headers.get(IDEMPOTENCY_KEY)
    if isinstance(call, StepCall) and call.journal is not None:
        key = call.journal.key
    if key is not None:
        # Of one call that is repeated after a crash: it must not be sent again under another id.
        key = hashlib.sha256(f"{call.agent_id}\n{key}\n".encode() + msgspec.json.encode(call.input)).hexdigest()
    store = call.store
    done = await store.do(_record(call, message, key), post(address, message, delay=_HELD))
    if not isinstance(done, Conflict):
        return done[0], done[1]
    if done.reason == "too-many":
        raise refusal(_SEND, "delivery-unavailable", _FULL)
    earlier = await store.read(FindRecord((DELIVERY,), key=key))
    if earlier is None:
        raise refusal(_SEND, "delivery-unavailable", "Try again later.")
    return _answer(earlier)


def _record(call: RoutedCall, message: Posting, key: str | None = None) -> PutRecord:
    assert message.record_id is not None
    data = to_json({"channel": call.input["channel"], "recipient": call.input["recipient"]})
    return PutRecord(message.record_id, DELIVERY, message.sender, WAITING, data, key=key, lifetime=KEPT, most=MOST)


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


_NOTIFY: Final = next(method for method in FLOOR if method.name == "NOTIFY")


@stateful
async def notify(call: RoutedCall) -> Effects | Envelope:
    """Answer NOTIFY /. The receipt says what was promised; the recipient confirms with CONFIRM."""
    given = call.input
    answered = answer_challenge(call, given["recipient"], given["content"])
    if answered is not None:
        return answered
    cancelled = _cancelled_monitor(call)
    if cancelled is not None:
        return await _cancel_monitor(call, cancelled)
    check_content(given, "content", MOST_MESSAGE)
    expires = read_future(given, "expiry")
    found = await find_recipients(call, [given["recipient"]])
    for name, fault in found.faults.items():
        raise fault.refuse(_NOTIFY, "unknown-recipient", name, field="/recipient")
    guarantee = given.get("delivery_guarantee", AT_LEAST_ONCE)
    if guarantee == EXACTLY_ONCE and found.addresses:
        message = "Only messages to agents and channels of this server arrive exactly once; choose at_least_once."
        raise refusal(_NOTIFY, "guarantee-impossible", message, field="/delivery_guarantee")
    origin = Origin(
        sender=call.agent_id or "",
        kind=NOTIFICATION,
        content=given["content"],
        urgency=given.get("urgency", USUAL),
        expires=expires,
        guarantee=guarantee,
        recipients=(given["recipient"],),
    )
    state = DELIVERED if found.agents else WAITING
    result = {"notification_id": new_id("ntf"), "recipient": given["recipient"], "status": state}
    result |= {"delivery_guarantee": guarantee} | ({} if expires is None else {"expires_at": write_instant(expires)})
    commands = _notifying(result["notification_id"], origin, found)
    return effects(commands, lambda _: result, too_much(_NOTIFY, "notifications"))


def _notifying(notification_id: str, origin: Origin, found: Recipients) -> tuple[Command, ...]:
    if found.agents and not found.people:
        message = msgspec.structs.replace(origin.message(notification_id), content=origin.content, ref=None)
        return (put_messages(notification_id, message, found.agents, kept_until=origin.expires),)
    record, *rest = send_to(notification_id, NOTIFICATION, origin, found, time.time())
    if found.addresses and not found.people:
        assert isinstance(record, PutRecord)
        record = msgspec.structs.replace(record, state=WAITING)
        rest = [origin.posting(notification_id, address, record=True) for address in found.addresses]
    return (record, *rest)


def _cancelled_monitor(call: RoutedCall) -> str | None:
    """Return the id of the monitor that a notification cancels (Tier 2 8.3); None for any other notification."""
    given = call.input
    content = given["content"] if isinstance(given["content"], Mapping) else {}
    event = given.get("event") or content.get("event_type") or content.get("event")
    if event != "monitor_cancel" or (is_canonical_id(given["recipient"]) and given["recipient"] != call.agent_id):
        return None
    return str(given.get("subscription_id") or content.get("subscription_id") or "")


async def _cancel_monitor(call: RoutedCall, subscription_id: str) -> Effects:
    """Cancel a monitor; NOTIFY knows 400 and 404, and one that has ended is not there."""
    try:
        outcome = await call.server.hooks[CANCEL](call, {"target_id": subscription_id}, ("monitor",))
    except RefusedError as error:
        raise RefusedError(_refuse_cancelled(error.refused)) from None
    assert isinstance(outcome, Effects), "monitors have no way of their own to be cancelled"
    result = {"notification_id": new_id("ntf"), "recipient": call.input["recipient"]}

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        answer = outcome.answer(results)
        if isinstance(answer, Refused):
            return _refuse_cancelled(answer)
        assert isinstance(answer, Envelope)
        return Envelope({**result, "subscription_id": subscription_id, "status": answer.result["status"]})

    return Effects(outcome.commands, tell, outcome.committed)


def _refuse_cancelled(refused: Refused) -> Refused:
    if refused.status in (status.NOT_FOUND, status.CONFLICT):
        return _NOTIFY.refuse("subscription-not-found", refused.message, field="/subscription_id")
    return refused
