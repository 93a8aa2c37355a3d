"""Delivery to the subscribers of channels, in batches that survive a crash: none is skipped, none receives it twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.extensions.messages.message import (
    EXACTLY_ONCE,
    PUBLICATION,
    PUBLISHED,
    SCHEDULED,
    STOPPED,
    Origin,
    Pending,
    address_messages,
    decode_origin,
)
from bespeak.extensions.messages.store import (
    Advance,
    AdvanceMany,
    ListSubscribers,
    NewMessage,
    PutOutbox,
    Subscriber,
    channel_inbox,
)
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.records import Record
from bespeak.state.store.store import Conflict

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

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
                pages[key] = await store.read(ListSubscribers(*key, BATCH))
            left: list[tuple[Record, Origin]] = []
            for batches in _grouped(self._advance(record, origin, pages) for record, origin in waiting):
                done = await store.do(AdvanceMany(tuple(batches)))
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
        rest: tuple[Pending, ...] = ()
        if origin.pending and not ended:
            pending, *others = origin.pending
            page = pages[_place(pending)]
            if len(page) == BATCH:
                others.insert(0, msgspec.structs.replace(pending, after=page[-1].record_id))
            rest = tuple(others)
            page = [subscriber for subscriber in page if self._lasts(subscriber)]
            owners = tuple(subscriber.owner for subscriber in page)
            if origin.kind == PUBLICATION and not pending.after:  # kept for later readers
                owners = (channel_inbox(pending.channel), *owners)
            message = origin.message(record.record_id, pending.channel)
            messages = address_messages(
                record.record_id, message, owners, kept_until=origin.kept_until(now), subscribed=True
            )
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
            record.record_id,
            record.fence,
            record.state,
            state,
            msgspec.structs.replace(origin, pending=rest).text(),
            due=rest[0].at if later else None,
            delay=_LEASE if rest and not later else None,
            messages=messages,
            postings=postings,
        )

    def _lasts(self, subscriber: Subscriber) -> bool:
        """Return True if the API key that made a subscription, if one did, has not ended."""
        by_key = '"api_key"' in subscriber.data  # most are not, and need not be decoded
        return not by_key or self._server.principals.lasts(_callback(subscriber.data).api_key)

    def _refuse(self, record: Record, origin: Origin) -> Advance | None:
        """Return the end of a publication whose author may not publish any more; None if it may."""
        judged = None if origin.authority is None else origin.authority.judge(self._server.principals)
        if not isinstance(judged, Refused):
            return None
        _logger.info("%s is not published: %s", record.record_id, judged.message)
        ended = {"code": judged.code, "message": judged.message}
        text = msgspec.structs.replace(origin, pending=(), ended=ended).text()
        return Advance(record.record_id, record.fence, record.state, STOPPED, text, None, None, (), ())


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
