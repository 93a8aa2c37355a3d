"""NOTIFY: puts a message into an agent's inbox, or has it delivered to an address or a channel (core 4.12)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, read_future, refuse_large, refuse_without_needs
from bespeak.runtime.entities.methods_cancel import revoke
from bespeak.runtime.floor import FLOOR
from bespeak.runtime.messages.message import (
    EXACTLY_ONCE,
    MOST_CONTENT,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    NOTIFICATION,
    USUAL,
    Origin,
    address_messages,
    new_id,
    send,
    too_much,
)
from bespeak.runtime.messages.posting import AT_LEAST_ONCE, WAITING
from bespeak.runtime.messages.recipients import Recipients, answer_challenge, find_recipients
from bespeak.state.store.commands.messages import PutMessages
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Command, Conflict

MONITOR_CANCEL: Final = "monitor_cancel"
_NOTIFY: Final = next(method for method in FLOOR if method.name == "NOTIFY")


async def notify(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer NOTIFY /. The receipt says what was promised; the recipient confirms with CONFIRM."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    answered = answer_challenge(call, given["recipient"], given["content"])
    if answered is not None:
        return answered
    cancelled = _cancelled_monitor(call)
    if cancelled is not None:
        return await _cancel(call, cancelled)
    refused = refuse_large("content", given["content"], MOST_CONTENT)
    expires = read_future(_NOTIFY, "expiry", given["expiry"]) if "expiry" in given else None
    if refused is not None or isinstance(expires, Refused):
        return refused or expires  # type: ignore[return-value] # one of them is a refusal
    found = await find_recipients(call, [given["recipient"]])
    for name, fault in found.faults.items():
        return _NOTIFY.refuse("unknown-recipient", f"{name[:80]!r} {fault}.", field="/recipient")
    guarantee = given.get("delivery_guarantee", AT_LEAST_ONCE)
    if guarantee == EXACTLY_ONCE and found.addresses:
        message = "Only messages to agents and channels of this server arrive exactly once; choose at_least_once."
        return _NOTIFY.refuse("guarantee-impossible", message, field="/delivery_guarantee")
    origin = Origin(
        sender=call.agent_id or "",
        kind=NOTIFICATION,
        content=given["content"],
        urgency=given.get("urgency", USUAL),
        expires=expires,
        guarantee=guarantee,
        recipients=(given["recipient"],),
    )
    notification_id = new_id("ntf")
    commands = _commands(notification_id, origin, found)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _NOTIFY.refuse("delivery-unavailable", too_much(results, "notifications"))
        result: dict[str, Any] = {
            "notification_id": notification_id,
            "recipient": given["recipient"],
            "status": "delivered" if found.agents else WAITING,
            "delivery_guarantee": guarantee,
        }
        if expires is not None:
            result["expires_at"] = write_instant(expires)
        return Envelope(result)

    return Effects(commands, tell)


def _commands(notification_id: str, origin: Origin, found: Recipients) -> tuple[Command, ...]:
    now = time.time()
    kept_until = origin.kept_until(now)
    if found.agents:
        message = msgspec.structs.replace(origin.message(notification_id), content=origin.content, ref=None)
        messages = address_messages(notification_id, message, found.agents, kept_until=kept_until)
        return (PutMessages(messages, most=MOST_RECEIVED, share=MOST_FROM_ONE),)
    record, *rest = send(notification_id, NOTIFICATION, origin, found, now)
    if found.addresses:
        assert isinstance(record, PutRecord)
        record = msgspec.structs.replace(record, state=WAITING)
        rest = [origin.posting(notification_id, address, record=True) for address in found.addresses]
    return (record, *rest)


def _cancelled_monitor(call: RoutedCall) -> str | None:
    """Return the id of the monitor that a notification cancels (Tier 2 8.3); None for any other notification."""
    given = call.input
    content = given["content"] if isinstance(given["content"], Mapping) else {}
    event = given.get("event") or content.get("event_type") or content.get("event")
    if event != MONITOR_CANCEL or (is_canonical_id(given["recipient"]) and given["recipient"] != call.agent_id):
        return None
    return str(given.get("subscription_id") or content.get("subscription_id") or "")


async def _cancel(call: RoutedCall, subscription_id: str) -> Effects | Envelope | Refused:
    outcome = await revoke(call, {"target_id": subscription_id}, ("monitor",))
    if not isinstance(outcome, Effects):
        return _refuse(outcome) if isinstance(outcome, Refused) else outcome
    notification_id = new_id("ntf")

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        answer = outcome.answer(results)
        if not isinstance(answer, Envelope):
            assert isinstance(answer, Refused)
            return _refuse(answer)
        cancelled = {"subscription_id": subscription_id, "status": answer.result["status"]}
        return Envelope({"notification_id": notification_id, "recipient": call.input["recipient"], **cancelled})

    return Effects(outcome.commands, tell, outcome.committed)


def _refuse(refused: Refused) -> Refused:
    """Refuse a monitor that cannot be cancelled; NOTIFY knows 400 and 404, and one that has ended is not there."""
    if refused.status in (status.NOT_FOUND, status.CONFLICT):
        return _NOTIFY.refuse("subscription-not-found", refused.message, field="/subscription_id")
    return refused
