"""The monitors of a server: looked at when they are due, in one process at a time, and told of once per change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.errors import StoreError
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.posting import Posting, post
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.messages.message import KEPT, MOST_RECEIVED, Message, address_messages, new_id
from bespeak.runtime.monitors import target as targets
from bespeak.runtime.monitors.monitor import Monitor, Seen, decode, encode
from bespeak.runtime.monitors.observer import GONE, Look, Observer, bound_value
from bespeak.runtime.monitors.threshold import is_beyond, is_news
from bespeak.runtime.turns import Turns
from bespeak.runtime.workflows.spec import restore_call
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.messages import PutMessages
from bespeak.state.store.commands.monitors import ACTIVE, MONITOR, NoteVersion, WakeMonitors, monitor_key
from bespeak.state.store.commands.records import ChangeRecord, Record, topic_of
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

STOPPED: Final = "stopped"
"""State of a monitor that ended by itself."""
NOTICE: Final = "monitor"
"""Kind of the messages and postings of monitors."""
_AT_ONCE: Final = 32
"""Looks of this process at the same time."""
_MOST_WAITING: Final = 5_000
"""Looks that wait for their turn, or are made."""
_WITHIN: Final = 20.0
"""Seconds for one look: less than the time for which it is claimed."""
_CALM: Final = 0.2
"""Seconds between two searches for monitors that are behind."""
_SHARE: Final = 20
"""Ratio of waiting to searching: with many monitors a search takes time that requests need."""


class Monitors:
    """Looks at what is due, and finds out what is due sooner."""

    def __init__(self, dispatcher: Dispatcher, store: Store, kinds: Sequence[str]) -> None:
        """Create the monitors of a process; `kinds` are the records that their owners can look at."""
        self._server = dispatcher.server
        self._store = store
        self._observer = Observer(dispatcher, store, tuple(kinds))
        self._kinds = kinds
        self._looking: set[asyncio.Task[None]] = set()
        self._claimed: dict[str, Record] = {}
        """Monitors that wait for their turn, as they were last claimed."""
        self._turns = Turns(_AT_ONCE, most=_MOST_WAITING, most_of_one=_MOST_WAITING)
        self._changed: set[bool] = set()
        """What has changed since the last search: agents (True), records (False)."""
        self._waking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what is looked at."""
        for kind in self._kinds:
            self._store.watch(topic_of(kind), lambda: self._wake(agents=False))
        self._server.agents.watch(lambda: self._wake(agents=True))

    async def close(self) -> None:
        """Stop looking; what is not finished is due again after its lease."""
        tasks = [*self._looking, *([self._waking] if self._waking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def carry(self, records: Sequence[Record]) -> None:
        """Look at monitors that are due. Their owners take turns: looks that take long hold up only their own."""
        for record in records:
            while len(self._looking) >= _MOST_WAITING:
                await asyncio.wait(self._looking, return_when=asyncio.FIRST_COMPLETED)
            waits = record.record_id in self._claimed
            self._claimed[record.record_id] = record
            if waits:
                continue
            run = self._take_turn(record.record_id, record.owner)
            task = asyncio.get_running_loop().create_task(run, name=f"bespeak-{record.record_id}")
            self._looking.add(task)
            task.add_done_callback(self._finished)

    async def _take_turn(self, record_id: str, owner: str) -> None:
        async with self._turns.take(owner):
            await self._look(self._claimed.pop(record_id))

    async def observe(self, call: RoutedCall, monitor: Monitor) -> tuple[Monitor, list[dict[str, Any]]] | Refused:
        """Look once; return the monitor with what it has seen now, and the changes that are worth telling."""
        look = await self._observer.look(call, monitor)
        if isinstance(look, Refused):
            return look
        return await self._compare(monitor, look)

    async def _compare(self, monitor: Monitor, look: Look) -> tuple[Monitor, list[dict[str, Any]]] | Refused:
        seen, news = dict(monitor.seen), []
        for event in monitor.events:
            if event not in look.values:
                continue
            value = look.values[event]
            before = seen.get(event, Seen())
            beyond = False
            if monitor.threshold is not None:
                if value is None:
                    continue
                judged = await is_beyond(
                    monitor.threshold, value, before.value, self._server.expressions, monitor.authority.agent_id
                )
                if isinstance(judged, ExpressionFault):
                    message = f"The threshold has no value for {event}: {judged.message}"
                    return Refused(status.BAD_REQUEST, "invalid-threshold", message, {"field": "/threshold"})
                beyond = judged
            told = bound_value(value)
            seen[event] = Seen(told, beyond)
            changed = (
                told != before.value
                if monitor.threshold is None
                else is_news(monitor.threshold, was=before.beyond, now=beyond)
            )
            if changed:
                news.append({"event": event, "value": told, "previous": before.value})
        return msgspec.structs.replace(monitor, seen=seen, version=look.version, views=look.views), news

    async def _look(self, record: Record) -> None:
        monitor = decode(record.data)
        if self._server.routes.router.find("MONITOR", "/") is None:
            return  # it is not enabled now; the record waits
        # The authority of the owner is checked again each time: a suspended agent observes nothing.
        call = restore_call(monitor.authority, self._server, "MONITOR")
        if isinstance(call, Refused):
            await self._stop(record, monitor, call, tell=False)
            return
        async with asyncio.timeout(_WITHIN):
            found = await self.observe(call, monitor)
        if isinstance(found, Refused):
            if found.code == "invalid-threshold":
                await self._store.do(self._change(record, monitor))
            else:
                await self._stop(record, monitor, found, tell=True)
            return
        after, news = found
        key = monitor_key(record.record_id.rpartition("-")[2], after.target.mark, after.version)
        done = await self._store.do(
            self._change(record, after, changed=True),
            NoteVersion(record.record_id, key),
            *(command for one in news for command in self._tell(record, monitor, one)),
        )
        if isinstance(done, Conflict) and done.reason == "inbox-full":
            # What is not told is not noted as seen either, so that it is told when the inbox has room.
            _logger.info("the inbox of %s is full; %s looks again later", record.owner, record.record_id)
            await self._store.do(self._change(record, monitor))

    async def _stop(self, record: Record, monitor: Monitor, refused: Refused, *, tell: bool) -> None:
        """End a monitor whose target is gone, or whose owner must not observe it any more."""
        _logger.info("%s ends: %s", record.record_id, refused.message)
        told: tuple[Command, ...] = ()
        if tell:
            event = monitor.events[0]
            before = monitor.seen.get(event, Seen()).value
            told = self._tell(record, monitor, {"event": event, "value": GONE, "previous": before})
        ended = msgspec.structs.replace(monitor, ended={"code": refused.code, "message": refused.message})
        stopped = ChangeRecord(
            record.record_id, (MONITOR,), (ACTIVE,), STOPPED, fence=record.fence, data=encode(ended), lifetime=KEPT
        )
        if isinstance(await self._store.do(stopped, *told), Conflict):
            await self._store.do(stopped)

    def _change(self, record: Record, monitor: Monitor, *, changed: bool = False) -> ChangeRecord:
        """Return the command that lets a monitor look again: after its interval, or at the end of its authority."""
        data = encode(monitor) if changed else None
        delay = monitor.authority.within(self._server.principals, monitor.interval)
        return ChangeRecord(record.record_id, (MONITOR,), (ACTIVE,), ACTIVE, fence=record.fence, data=data, delay=delay)

    def _tell(self, record: Record, monitor: Monitor, news: Mapping[str, Any]) -> tuple[Command, ...]:
        """Return the commands that tell the owner, in the transaction that notes the change as seen."""
        now, notice_id = time.time(), new_id("ntf")
        content = {
            "subscription_id": record.record_id,
            "target": describe(monitor.target),
            **news,
            "observed_at": write_instant(now),
        }
        sender = self._server.registrar.service.identity.server_id
        if monitor.callback == record.owner:
            message = Message(sender=sender, kind=NOTICE, content=content)
            messages = address_messages(notice_id, message, (record.owner,), kept_until=now + KEPT)
            return (PutMessages(messages, most=MOST_RECEIVED),)
        return (post(monitor.callback, Posting(notice_id, NOTICE, sender, content, recipient=record.owner)),)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._looking.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.INFO if isinstance(error, StoreError | TimeoutError) else logging.ERROR
            _logger.log(level, "%s failed here; it looks again when its claim ends", task.get_name(), exc_info=error)

    def _wake(self, *, agents: bool) -> None:
        self._changed.add(agents)
        if self._waking is None or self._waking.done():
            self._waking = asyncio.get_running_loop().create_task(self._wake_changed(), name="bespeak-monitors")

    async def _wake_changed(self) -> None:
        """Make the monitors due whose targets have changed. What is missed here is seen at the next interval."""
        while self._changed:
            agents, began = self._changed.pop(), time.monotonic()
            try:
                await self._store.do(WakeMonitors(agents=agents))
            except StoreError as error:
                _logger.info("could not look for monitors that are behind: %s", error)
            await asyncio.sleep(max(_CALM, _SHARE * (time.monotonic() - began)))


def describe(target: targets.Target) -> Any:
    """Return a target as its owner has written it."""
    if target.kind != targets.ENDPOINT:
        return target.name
    if not target.parameters and not target.select:
        return f"{target.method} {target.name}"
    made: dict[str, Any] = {"method": target.method, "path": target.name, "parameters": target.parameters}
    return {**made, "select": target.select} if target.select else made
