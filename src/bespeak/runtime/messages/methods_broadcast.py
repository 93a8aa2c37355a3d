"""ALERT, BROADCAST and PUBLISH: one message for several recipients (Tier 2 5.10, 7.1, 7.2).

An alert goes on to the next recipient unless it is acknowledged in time. The messages of later recipients are
written at once, with their times: nobody finds them before, and acknowledging the alert withdraws those whose time
has not come. So any number of alerts is on time, after a restart too.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, invalid, read_future, refuse_large, refuse_without_needs
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.messages.message import (
    BROADCAST,
    KEPT,
    MOST_CONTENT,
    MOST_COPIES,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    MOST_SENT,
    PUBLICATION,
    PUBLISHED,
    SCHEDULED,
    Message,
    Origin,
    Pending,
    address_messages,
    new_id,
    send,
    too_much,
)
from bespeak.runtime.messages.recipients import Recipients, as_address, find_recipients
from bespeak.state.store.commands.messages import (
    ALERT,
    SENT,
    Channel,
    FindChannels,
    NewMessage,
    PutAlert,
    PutMessages,
    PutOutbox,
)
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Command, Conflict

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


_BROADCAST: Final = STANDARD["BROADCAST"]
_AGTP: Final = "agtp"
_SCHEMES: Final[Mapping[str, tuple[str, ...]]] = {
    "email": ("mailto:",),
    "webhook": ("https:", "http:"),
    "sms": ("sms:",),
}
"""Addresses that belong to each channel outside."""


async def broadcast(call: RoutedCall) -> Effects | Refused:
    """Answer BROADCAST /."""
    refused = refuse_without_needs(call) or refuse_large("content", call.input["content"], MOST_CONTENT)
    if refused is not None:
        return refused
    given = call.input
    expires = read_future(_BROADCAST, "expiry", given["expiry"]) if "expiry" in given else None
    if isinstance(expires, Refused):
        return expires
    names = [given["audience"]] if isinstance(given["audience"], str) else given["audience"]
    channel = given.get("channel", _AGTP)
    if channel != _AGTP:
        for name in names:
            if not as_address(name).startswith(_SCHEMES[channel]):
                message = f"{name[:80]!r} is not an address of the channel {channel}."
                return _BROADCAST.refuse("audience-refused", message, recipient=name[:256])
    found = await find_recipients(call, names)
    for name, fault in found.faults.items():
        if name in found.addresses:
            return _BROADCAST.refuse("delivery-unavailable", f"{name[:80]!r} {fault}.", recipient=name[:256])
        if name in found.channels and not found.count:
            return _BROADCAST.refuse("empty-audience", f"{name[:80]!r} {fault}.", field="/audience")
        return _BROADCAST.refuse("audience-refused", f"{name[:80]!r} {fault}.", recipient=name[:256])
    refused = refuse_large("content", given["content"], MOST_COPIES // max(len(found.addresses), 1))
    if refused is not None:
        return refused
    origin = Origin(
        sender=call.agent_id or "",
        kind=BROADCAST,
        content=given["content"],
        expires=expires,
        recipients=tuple(dict.fromkeys(names)),
    )
    broadcast_id = new_id("brd")

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _BROADCAST.refuse("delivery-unavailable", too_much(results, "broadcasts"))
        full = len(found.agents) - results[1] if found.agents else 0
        result = {"message_id": broadcast_id, "channel": channel, "deliveries": found.count - full}
        return Envelope(result if expires is None else {**result, "expires_at": write_instant(expires)})

    return Effects(send(broadcast_id, BROADCAST, origin, found, time.time()), tell)


_PUBLISH: Final = STANDARD["PUBLISH"]


async def publish(call: RoutedCall) -> Effects | Refused:
    """Answer PUBLISH /. A channel that somebody has registered is for its owner; others are for everybody."""
    refused = refuse_without_needs(call) or refuse_large("content", call.input["content"], MOST_CONTENT)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, now, agent_id = call.input, time.time(), call.agent_id or ""
    at = read_future(_PUBLISH, "schedule_at", given["schedule_at"]) if "schedule_at" in given else now
    if isinstance(at, Refused):
        return at
    authority = Authority.of(call.principal, call.request)
    if authority.expires is not None and authority.expires <= at > now:
        message = f"is after the end of the caller's credential, {write_instant(authority.expires)}; use a longer one."
        return invalid("schedule_at", message)
    name = given["channel"]
    channel: Channel = (await call.server.store.read(FindChannels((name,))))[name]
    if channel.owner not in (None, agent_id, call.principal.principal_id):
        return _PUBLISH.refuse("channel-refused", f"Only the owner of the channel {name[:80]!r} may publish on it.")
    origin = Origin(
        sender=agent_id,
        kind=PUBLICATION,
        content=given["content"],
        channel=name,
        format=given.get("format"),
        recipients=(name,),
        pending=(Pending(name, at),),
        authority=authority if at > now else None,
    )
    content_id = new_id("pub")
    state = SCHEDULED if at > now else PUBLISHED
    parts = [agent_id, name, given.get("format"), given["content"]]
    command = PutRecord(
        content_id,
        PUBLICATION,
        agent_id,
        state,
        origin.text(),
        key=hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest(),
        due=at,
        lifetime=at - now + KEPT,
        most=MOST_SENT,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            if results.reason == "too-many":
                message = f"The agent has {MOST_SENT} publications that are still kept, the maximum."
                return _PUBLISH.refuse("too-many-publications", message)
            message = "The agent has published this content on the channel already."
            return _PUBLISH.refuse("already-published", message, content_id=results.details.get("record_id"))
        return Envelope(
            {
                "content_id": content_id,
                "channel": name,
                "status": state,
                "publish_at": write_instant(at),
                "subscribers": channel.subscribers,
            }
        )

    return Effects((command,), tell)
