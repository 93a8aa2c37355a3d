"""NOTIFY: puts a message into an agent's inbox, or has it delivered to an address or a channel (core 4.12)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.floor import FLOOR
from bespeak.extensions.messages.message import (
    EXACTLY_ONCE,
    MOST_CONTENT,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    NOTIFICATION,
    USUAL,
    Origin,
    address_messages,
    send,
    too_much,
)
from bespeak.extensions.messages.posting import AT_LEAST_ONCE, WAITING
from bespeak.extensions.messages.recipients import Recipients, answer_challenge, find_recipients
from bespeak.extensions.messages.store import PutMessages
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import CANCEL
from bespeak.runtime.handling import RefusedError, check_content, effects, new_id, read_future, refusal, stateful
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Command, Conflict

MONITOR_CANCEL: Final = "monitor_cancel"
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
        return await _cancel(call, cancelled)
    check_content(given, "content", MOST_CONTENT)
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
    result: dict[str, Any] = {
        "notification_id": new_id("ntf"),
        "recipient": given["recipient"],
        "status": "delivered" if found.agents else WAITING,
        "delivery_guarantee": guarantee,
    }
    if expires is not None:
        result["expires_at"] = write_instant(expires)
    commands = _commands(result["notification_id"], origin, found)
    return effects(commands, lambda _: result, too_much(_NOTIFY, "notifications"))


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


async def _cancel(call: RoutedCall, subscription_id: str) -> Effects:
    """Cancel a monitor; NOTIFY knows 400 and 404, and one that has ended is not there."""
    try:
        outcome = await call.server.hooks[CANCEL](call, {"target_id": subscription_id}, ("monitor",))
    except RefusedError as error:
        raise RefusedError(_refuse(error.refused)) from None
    assert isinstance(outcome, Effects), "monitors have no way of their own to be cancelled"
    result = {"notification_id": new_id("ntf"), "recipient": call.input["recipient"]}

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        answer = outcome.answer(results)
        if isinstance(answer, Refused):
            return _refuse(answer)
        assert isinstance(answer, Envelope)
        return Envelope({**result, "subscription_id": subscription_id, "status": answer.result["status"]})

    return Effects(outcome.commands, tell, outcome.committed)


def _refuse(refused: Refused) -> Refused:
    if refused.status in (status.NOT_FOUND, status.CONFLICT):
        return _NOTIFY.refuse("subscription-not-found", refused.message, field="/subscription_id")
    return refused
