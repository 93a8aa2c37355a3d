"""ALERT, BROADCAST and PUBLISH: one message for several recipients, and the subscribers of channels (Tier 2 5.10, 7).

An alert goes on to the next recipient unless it is acknowledged in time. The messages of later recipients are
written at once, with their times: nobody finds them before, and acknowledging the alert withdraws those whose time
has not come. So any number of alerts is on time, after a restart too. Subscribers receive in batches that survive a
crash: none is skipped, none receives it twice.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.agent import DEFAULT_ZONE
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages import store as commands
from bespeak.extensions.messages.message import (
    BROADCAST,
    EXACTLY_ONCE,
    KEPT,
    MOST_CONTENT,
    MOST_FROM_ONE,
    MOST_SENT,
    PUBLICATION,
    SCHEDULED,
    Message,
    Origin,
    Pending,
    address_messages,
    decode_origin,
    put_messages,
    send,
    share_of,
    too_much,
)
from bespeak.extensions.messages.recipients import PERSON, Recipients, as_address, find_recipients, people_of
from bespeak.extensions.messages.store import ALERT, SENT, Advance, NewMessage, PutOutbox, Subscriber
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import check_content, effects, invalid_time, new_id, read_future, refusal, stateful
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import PutRecord, Record
from bespeak.state.store.store import Command, Conflict

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

PUBLISHED: Final = "published"
STOPPED: Final = "stopped"  # state of a publication whose author must not publish any more when it is due
MOST_COPIES: Final = 8 * 1024 * 1024  # bytes of all the copies that addresses outside get of one content
UNACKNOWLEDGED: Final = "unacknowledged"  # kind of the message that tells the author so
_HOUR: Final = 3600.0  # seconds to acknowledge an alert that names no deadline but an escalation path
_ALERT: Final = STANDARD["ALERT"]


@stateful
async def alert(call: RoutedCall) -> Effects:
    check_content(call.input, "message", MOST_CONTENT)
    given, now = call.input, time.time()
    names, path = _names(given["recipient"]), _names(given.get("escalation_path", []))
    deadline = read_future(given, "acknowledge_by") or (now + _HOUR if path else None)
    found = await find_recipients(call, [*names, *path])
    for name, fault in found.faults.items():
        raise fault.refuse(_ALERT, "unknown-recipient", name)
    check_content(given, "message", MOST_COPIES // max(len(found.addresses), 1))
    origin = Origin(
        sender=call.agent_id or "",
        kind=ALERT,
        content={"severity": given["severity"], "message": given["message"]},
        urgency="critical",
        recipients=tuple(names),
        authority=found.authority,
    )
    alert_id = new_id(ALERT)
    result = {"alert_id": alert_id, "status": SENT, "recipients": len(names), "escalates_to": path}
    if deadline is not None:
        result["acknowledge_by"] = write_instant(deadline)
    sending = compose_alert(alert_id, origin, found, path, now=now, deadline=deadline)
    return effects(sending, lambda _: result, too_much(_ALERT, "alerts"))


def _names(given: str | Sequence[str]) -> list[str]:
    return list(dict.fromkeys([given] if isinstance(given, str) else given))


def compose_alert(
    alert_id: str, origin: Origin, found: Recipients, path: list[str], *, now: float, deadline: float | None
) -> tuple[Command, ...]:
    """Return what sends an alert now, and what sends it on at each deadline. Every step has as long as the first."""
    message = origin.message(alert_id)
    first = found.of(origin.recipients)
    sent = put_messages(alert_id, message, first.agents, kept_until=now + KEPT, share=share_of(found))
    pending = [Pending(channel) for channel in first.channels]
    later: list[NewMessage] = []
    held: list[PutOutbox] = []
    escalations: list[Pending] = []
    end = now
    if deadline is not None:
        for number, name in enumerate(path):
            at = deadline + number * (deadline - now)
            step = found.of([name])
            escalations.append(Pending(name, at))
            later += address_messages(alert_id, message, step.agents, kept_until=at + KEPT, at=at)
            sent_as, delay = f"{alert_id}-{number}", at - now
            held += [origin.posting(sent_as, one, delay=delay, about=alert_id) for one in step.addresses]
            pending += [Pending(channel, at) for channel in step.channels]
        end = deadline + len(path) * (deadline - now)
        nobody = Message(sender=origin.sender, kind=UNACKNOWLEDGED, ref=alert_id, urgency=origin.urgency)
        later += address_messages(f"{alert_id}-end", nobody, (origin.sender,), kept_until=end + KEPT, at=end)
    ids = tuple(one.record_id for one in later)
    origin = msgspec.structs.replace(origin, pending=tuple(pending), later=ids, escalations=tuple(escalations))
    record = PutRecord(
        *(alert_id, ALERT, origin.sender, SENT, origin.text()),
        due=pending[0].at if pending else None,
        lifetime=end - now + KEPT,
        most=MOST_SENT,
    )
    return (
        commands.PutAlert(record, tuple(held)),
        *((sent,) if first.agents else ()),
        *((commands.PutMessages(tuple(later), share=MOST_FROM_ONE, required=False),) if later else ()),
        *(origin.posting(alert_id, address) for address in first.addresses),
    )


_BROADCAST: Final = STANDARD["BROADCAST"]
_AGTP: Final = "agtp"
_ZONE: Final = "zone:"  # begins the name of a governance zone
_MOST_MEMBERS: Final = 1_000  # agents of a zone that one broadcast reaches
_CHANNELS: Final = {"mailto": "email", "https": "webhook", "http": "webhook", "sms": "sms"}  # by scheme of addresses


@stateful
async def broadcast(call: RoutedCall) -> Effects:
    given, wanted = call.input, call.input.get("channel")
    check_content(given, "content", MOST_CONTENT)
    expires = read_future(given, "expiry")
    names = _names(given["audience"])
    for name in names:
        if wanted not in (None, _CHANNELS.get(as_address(name).partition(":")[0], _AGTP)):
            message = f"{name[:80]!r} is not an address of the channel {wanted}."
            raise refusal(_BROADCAST, "audience-refused", message, recipient=name[:256])
    found = await find_recipients(call, [member for name in names for member in _list_members(call, name)])
    for name, fault in found.faults.items():
        if name in found.channels and not found.count:
            raise fault.refuse(_BROADCAST, "empty-audience", name, field="/audience")
        raise fault.refuse(_BROADCAST, "audience-refused", name)
    check_content(given, "content", MOST_COPIES // max(len(found.addresses), 1))
    origin = Origin(
        sender=call.agent_id or "", kind=BROADCAST, content=given["content"], expires=expires, recipients=tuple(names)
    )
    broadcast_id = new_id("brd")

    def result(results: Sequence[Any]) -> dict[str, Any]:
        full = len(found.agents) - results[1] if found.agents else 0
        schemes = (address.partition(":")[0] for address in found.addresses)
        outside = Counter(_CHANNELS.get(scheme, scheme) for scheme in schemes if scheme != PERSON)
        used = outside + Counter({_AGTP: found.count - full - outside.total()})
        way = "several" if len(used) > 1 else next(iter(used), _AGTP)
        told = {"message_id": broadcast_id, "channel": way, "deliveries": used.total(), "channels": dict(used)}
        return told if expires is None else {**told, "expires_at": write_instant(expires)}

    sending = send(broadcast_id, BROADCAST, origin, found, time.time())
    return effects(sending, result, too_much(_BROADCAST, "broadcasts"))


def _list_members(call: RoutedCall, name: str) -> Sequence[str]:
    """Return the other agents of the zone that `zone:NAME` means, if DISCOVER shows it to the caller, or the name."""
    zone, caller = name.removeprefix(_ZONE), call.server.agents.get(call.agent_id)
    if zone == name:
        return (name,)
    agents = () if caller is None or zone not in (DEFAULT_ZONE, caller.governance_zone) else call.server.agents
    members = [one.agent_id for one in agents if one.is_active and one.governance_zone == zone and one is not caller]
    if not 0 < len(members) <= _MOST_MEMBERS:
        message = f"{name[:80]!r} must be the agent's own zone or {DEFAULT_ZONE}, with 1 to {_MOST_MEMBERS} others."
        raise refusal(_BROADCAST, "audience-refused", message, field="/audience")
    return members


_PUBLISH: Final = STANDARD["PUBLISH"]


@stateful
async def publish(call: RoutedCall) -> Effects:
    """Answer PUBLISH /. A channel that somebody has registered is for its owner; others are for everybody."""
    check_content(call.input, "content", MOST_CONTENT)
    given, now, agent_id, name = call.input, time.time(), call.agent_id or "", call.input["channel"]
    at = read_future(given, "schedule_at") or now
    authority = Authority.of(call.principal, call.request)
    if authority.expires is not None and authority.expires <= at > now:
        end = write_instant(authority.expires)
        raise invalid_time("schedule_at", f"is after the end of the caller's credential, {end}; use a longer one.")
    if is_canonical_id(name) or people_of(call.server).find(name, call) is not None:
        message = f"{name[:80]!r} is an agent or a person, not a channel; NOTIFY sends to one, BROADCAST to several."
        raise refusal(_PUBLISH, "channel-refused", message, field="/channel")
    channel: commands.Channel = (await call.store.read(commands.FindChannels((name,))))[name]
    if channel.owner not in (None, agent_id, call.principal.principal_id):
        message = f"Only the owner of the channel {name[:80]!r} may publish on it."
        raise refusal(_PUBLISH, "channel-refused", message)
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
    state = SCHEDULED if at > now else PUBLISHED
    parts = [agent_id, name, given.get("format"), given["content"]]
    key = hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()
    record = (new_id("pub"), PUBLICATION, agent_id, state, origin.text(), key)
    full = f"The agent has {MOST_SENT} publications that are still kept, the maximum."
    repeated = "The agent has published this content on the channel already."
    return effects(
        [PutRecord(*record, due=at, lifetime=at - now + KEPT, most=MOST_SENT)],
        lambda _: {
            "content_id": record[0],
            "channel": name,
            "status": state,
            "publish_at": write_instant(at),
            "subscribers": channel.subscribers,
        },
        {
            "too-many": _PUBLISH.refuse("too-many-publications", full),
            "": lambda found: _PUBLISH.refuse("already-published", repeated, content_id=found.get("record_id")),
        },
    )


_logger = logging.getLogger(__name__)

BATCH: Final = 500  # subscribers that one thing is sent to in a transaction
_AT_ONCE: Final = 1_000  # messages of one transaction, unless a single batch has more
_LEASE: Final = 30.0

Pages = dict[tuple[str, str], list[Subscriber]]  # subscribers by channel and by the subscription that they come after


class _Subscription(msgspec.Struct):
    class Data(msgspec.Struct):
        callback: str | None = None

    data: Data
    api_key: str | None = None


_callback = msgspec.json.Decoder(_Subscription).decode


class Fanout:
    """Carries out what is due of things that were sent to channels: many of them in one transaction."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def carry(self, records: Sequence[Record]) -> None:
        """Send each of these as far as it is due."""
        store = self._server.store
        assert store is not None
        waiting = [(record, decode_origin(record.data)) for record in records]
        while waiting:
            pages: Pages = {}
            for key in {_place(origin.pending[0]) for _, origin in waiting if origin.pending}:
                pages[key] = await store.read(commands.ListSubscribers(*key, BATCH))
            left: list[tuple[Record, Origin]] = []
            for batches in _grouped(self._advance(record, origin, pages) for record, origin in waiting):
                done = await store.do(commands.AdvanceMany(tuple(batches)))
                assert not isinstance(done, Conflict)
                # Those of another process, and what was cancelled or acknowledged, are not among them.
                going_on = {batch.record_id: batch for batch in batches if batch.delay is not None}
                left += [
                    (msgspec.structs.replace(record, state=batch.state), decode_origin(batch.data))
                    for record, _ in waiting
                    if (batch := going_on.get(record.record_id)) is not None and record.record_id in done[0]
                ]
            waiting = left

    def _advance(self, record: Record, origin: Origin, pages: Pages) -> Advance:
        now = time.time()
        if record.state == SCHEDULED and (stopped := self._refuse(record, origin)) is not None:
            return stopped
        state = PUBLISHED if record.kind == PUBLICATION else record.state
        ended = origin.expires is not None and origin.expires <= now
        messages: tuple[NewMessage, ...] = ()
        postings: tuple[PutOutbox, ...] = ()
        bounded: tuple[Subscriber, ...] = ()
        rest: tuple[Pending, ...] = ()
        if origin.pending and not ended:
            pending, *others = origin.pending
            page = pages[_place(pending)]
            if len(page) == BATCH:
                others.insert(0, msgspec.structs.replace(pending, after=page[-1].record_id))
            rest = tuple(others)
            # Without those that an API key has made which has ended; most are made by none, and need not be decoded.
            lasts = self._server.principals.lasts
            page = [one for one in page if '"api_key"' not in one.data or lasts(_callback(one.data).api_key)]
            owners = tuple(subscriber.owner for subscriber in page)
            bounded = tuple(subscriber for subscriber in page if commands.BOUNDED in subscriber.data)
            if origin.kind == PUBLICATION and not pending.after:  # kept for later readers
                owners = (commands.channel_inbox(pending.channel), *owners)
            message = origin.message(record.record_id, pending.channel)
            kept = origin.kept_until(now)
            messages = address_messages(record.record_id, message, owners, kept_until=kept, subscribed=True)
            # Only an inbox can keep the promise of exactly once. The callbacks have agreed to receive.
            # Nothing is pushed to those of agents that may not read it here any more.
            if origin.guarantee != EXACTLY_ONCE and self._server.part("delivery") is not None:
                postings = tuple(
                    origin.posting(record.record_id, callback, recipient=subscriber.owner)
                    for subscriber in page
                    if (callback := _callback(subscriber.data).data.callback) is not None
                    and not isinstance(self._server.principals.resolve(subscriber.owner, None), Refused)
                )
        later = bool(rest) and rest[0].at > now
        return Advance(
            *(record.record_id, record.fence, record.state, state),
            msgspec.structs.replace(origin, pending=rest).text(),
            due=rest[0].at if later else None,
            delay=_LEASE if rest and not later else None,
            messages=messages,
            postings=postings,
            bounded=bounded,
        )

    def _refuse(self, record: Record, origin: Origin) -> Advance | None:
        """Return the end of a publication whose author may not publish any more; None if it may."""
        judged = None if origin.authority is None else origin.authority.judge(self._server.principals)
        if not isinstance(judged, Refused):
            return None
        _logger.info("%s is not published: %s", record.record_id, judged.message)
        ended = {"code": judged.code, "message": judged.message}
        text = msgspec.structs.replace(origin, pending=(), ended=ended).text()
        return Advance(record.record_id, record.fence, record.state, STOPPED, text)


def _place(pending: Pending) -> tuple[str, str]:
    return (pending.channel, pending.after)


def _grouped(batches: Iterator[Advance]) -> Iterator[list[Advance]]:
    """Divide batches into those of one transaction."""
    group: list[Advance] = []
    size = 0
    for batch in batches:
        size += len(batch.messages) + 1
        if group and size > _AT_ONCE:
            yield group
            group, size = [], len(batch.messages) + 1
        group.append(batch)
    if group:
        yield group
