"""ALERT: an urgent message that goes on to the next recipient unless it is acknowledged in time (Tier 2 7.1).

The messages of later recipients are written at once, with their times: nobody finds them before, and acknowledging the
alert withdraws those whose time has not come. So any number of alerts is on time, after a restart too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import (
    KEPT,
    MOST_CONTENT,
    MOST_COPIES,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    Message,
    address_messages,
    new_id,
)
from bespeak.runtime.messages.origin import MOST_SENT, Origin, Pending, too_much
from bespeak.runtime.messages.recipients import Recipients, find_recipients
from bespeak.runtime.methods.needs import read_future, refuse_large, refuse_without_needs
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.messages import ALERT, SENT, NewMessage, PutAlert, PutMessages
from bespeak.state.store.commands.outbox import PutOutbox
from bespeak.state.store.commands.records import PutRecord

UNACKNOWLEDGED: Final = "unacknowledged"
"""Kind of the message that tells the author that nobody has acknowledged an alert."""
_HOUR: Final = 3600.0
"""Seconds to acknowledge an alert that names no deadline but an escalation path."""
_ALERT: Final = STANDARD["ALERT"]


async def alert(call: RoutedCall) -> Effects | Refused:
    """Answer ALERT /."""
    refused = refuse_without_needs(call) or refuse_large("message", call.input["message"], MOST_CONTENT)
    if refused is not None:
        return refused
    given, now = call.input, time.time()
    path = _names(given.get("escalation_path", []))
    deadline: float | Refused | None = now + _HOUR if path else None
    if "acknowledge_by" in given:
        deadline = read_future(_ALERT, "acknowledge_by", given["acknowledge_by"])
    if isinstance(deadline, Refused):
        return deadline
    names = _names(given["recipient"])
    found = await find_recipients(call, [*names, *path])
    for name, fault in found.faults.items():
        return _ALERT.refuse("unknown-recipient", f"{name[:80]!r} {fault}.", recipient=name[:256])
    refused = refuse_large("message", given["message"], MOST_COPIES // max(len(found.addresses), 1))
    if refused is not None:
        return refused
    origin = Origin(
        sender=call.agent_id or "",
        kind=ALERT,
        content={"severity": given["severity"], "message": given["message"]},
        urgency="critical",
        recipients=tuple(names),
    )
    alert_id = new_id(ALERT)
    commands = compose_alert(alert_id, origin, found, path, now=now, deadline=deadline)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _ALERT.refuse("delivery-unavailable", too_much(results, "alerts"))
        result: dict[str, Any] = {
            "alert_id": alert_id,
            "status": SENT,
            "recipients": len(names),
            "escalates_to": path,
        }
        return Envelope(result if deadline is None else {**result, "acknowledge_by": write_instant(deadline)})

    return Effects(commands, tell)


def _names(given: str | Sequence[str]) -> list[str]:
    return list(dict.fromkeys([given] if isinstance(given, str) else given))


def compose_alert(
    alert_id: str, origin: Origin, found: Recipients, path: list[str], *, now: float, deadline: float | None
) -> tuple[Command, ...]:
    """Return what sends an alert now, and what sends it on at each deadline. Every step has as long as the first."""
    message = origin.message(alert_id)
    first = found.of(origin.recipients)
    sent = address_messages(alert_id, message, first.agents, kept_until=now + KEPT)
    pending = [Pending(channel) for channel in first.channels]
    later: list[NewMessage] = []
    held: list[PutOutbox] = []
    end = now
    if deadline is not None:
        for number, name in enumerate(path):
            at = deadline + number * (deadline - now)
            step = found.of([name])
            later += address_messages(alert_id, message, step.agents, kept_until=at + KEPT, at=at)
            held += [origin.posting(f"{alert_id}-{number}", address, delay=at - now) for address in step.addresses]
            pending += [Pending(channel, at) for channel in step.channels]
        end = deadline + len(path) * (deadline - now)
        nobody = Message(sender=origin.sender, kind=UNACKNOWLEDGED, ref=alert_id, urgency=origin.urgency)
        later += address_messages(f"{alert_id}-end", nobody, (origin.sender,), kept_until=end + KEPT, at=end)
    origin = msgspec.structs.replace(origin, pending=tuple(pending), later=tuple(one.record_id for one in later))
    record = PutRecord(
        alert_id,
        ALERT,
        origin.sender,
        SENT,
        origin.text(),
        due=pending[0].at if pending else None,
        lifetime=end - now + KEPT,
        most=MOST_SENT,
    )
    return (
        PutAlert(record, tuple(held)),
        *((PutMessages(sent, most=MOST_RECEIVED, share=MOST_FROM_ONE),) if sent else ()),
        *((PutMessages(tuple(later), share=MOST_FROM_ONE, required=False),) if later else ()),
        *(origin.posting(alert_id, address) for address in first.addresses),
    )
