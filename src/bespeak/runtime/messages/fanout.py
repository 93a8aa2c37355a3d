"""Delivery to the subscribers of channels, in batches that survive a crash: none is skipped, none receives it twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.runtime.messages.message import address_messages
from bespeak.runtime.messages.origin import EXACTLY_ONCE, PUBLICATION, PUBLISHED, Origin, decode_origin
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.messages import ListSubscribers, PutMessages, Subscriber, channel_mark
from bespeak.state.store.commands.records import ChangeRecord, Record

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

BATCH: Final = 500
"""Subscribers of one transaction."""
_LEASE: Final = 30.0


class _Subscription(msgspec.Struct):
    class Data(msgspec.Struct):
        callback: str | None = None

    data: Data


_callback = msgspec.json.Decoder(_Subscription).decode


class Fanout:
    """Carries out what is due of things that were sent to channels."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def carry(self, records: Sequence[Record]) -> None:
        """Deliver each of these; their transactions are grouped by the store."""
        outcomes = await asyncio.gather(*(self._deliver(record) for record in records), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _deliver(self, record: Record) -> None:
        store = self._server.store
        assert store is not None
        origin = decode_origin(record.data)
        state = PUBLISHED if record.kind == PUBLICATION else record.state
        while origin.pending:
            pending, *rest = origin.pending
            now = time.time()
            late = origin.expires is not None and origin.expires <= now
            batch: list[Subscriber] = []
            if not late:
                batch = await store.read(ListSubscribers(pending.channel, pending.after, BATCH))
            if len(batch) == BATCH:
                rest = [msgspec.structs.replace(pending, after=batch[-1].record_id), *rest]
            origin = msgspec.structs.replace(origin, pending=tuple(rest))
            later = bool(rest) and rest[0].at > now
            change = ChangeRecord(
                record.record_id,
                (record.kind,),
                (record.state,),
                state,
                fence=record.fence,
                data=origin.text(),
                due=rest[0].at if later else None,
                delay=_LEASE if rest and not later else None,
            )
            more = () if late else self._commands(record.record_id, origin, pending.channel, batch, not pending.after)
            done = await store.do(change, *more)
            if isinstance(done, Conflict) or later:
                return  # another process has it, it was cancelled or acknowledged, or the rest has time
            record = done[0]

    def _commands(
        self, origin_id: str, origin: Origin, channel: str, batch: Sequence[Subscriber], first: bool
    ) -> tuple[Command, ...]:
        """Return what delivers to a batch; the first one of a publication also keeps it for later readers."""
        owners = tuple(subscriber.owner for subscriber in batch)
        if first and origin.kind == PUBLICATION:
            owners = (channel_mark(channel), *owners)
        messages = address_messages(
            origin_id, origin.message(origin_id, channel), owners, kept_until=origin.kept_until(time.time())
        )
        postings = []
        # Only an inbox can keep the promise of exactly once. The callbacks have agreed to receive.
        if origin.guarantee != EXACTLY_ONCE and self._server.delivery is not None:
            for subscriber in batch:
                callback = _callback(subscriber.data).data.callback
                if callback is not None:
                    postings.append(origin.posting(origin_id, callback, recipient=subscriber.owner))
        return (PutMessages(messages), *postings) if messages else ()
