"""The queues of a server: items are claimed in order, done by functions of the service, and end with a result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from bespeak.contract.participant import QueueOptions
from bespeak.errors import StoreError
from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues.store import (
    DEAD,
    DONE,
    KEPT,
    QUEUED,
    RUNNING,
    SUBMISSION,
    ClaimItems,
    Item,
    NextItem,
    PulledQueue,
    ReturnItems,
    change_item,
    decode_item,
    delay_after,
    end_item,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.handling import RefusedError, ResultJournal, may_pass_later, run_function, to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import TOPIC, PutRecord, Record, RenewRecords
from bespeak.state.store.store import Command, Conflict, Store, level_of

_logger = logging.getLogger(__name__)

MOST_RESULT: Final = 256 * 1024  # bytes of a result that are kept
_LONGEST_SLEEP: Final = 5.0  # seconds after which the store is asked again, in case a wake-up was lost
_PAUSE: Final = 1.0  # seconds after a failure of the store
_TOO_LARGE: Final = f"The result has more than {MOST_RESULT} bytes; it is not kept."


class Queues:
    """Works on the items of all queues of a service, in this process."""

    def __init__(self, dispatcher: Dispatcher, store: Store, queues: Mapping[str, Joined]) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self._queues = {name: one for name, one in queues.items() if "run" in one.routes}
        self._pulled = [one for one in queues.values() if "read" in one.routes]
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._working: dict[str, dict[asyncio.Task[None], Record]] = {name: {} for name in self._queues}

    def start(self) -> None:
        self._store.watch(TOPIC, self._woken.set)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-queues")

    async def stop(self) -> None:
        """Stop working. What had begun waits again, for any process; its attempt counts."""
        await cancel_tasks(self._task)
        working = {task: record for tasks in self._working.values() for task, record in tasks.items()}
        await cancel_tasks(*working)
        for record in working.values():
            change = change_item(record, QUEUED, decode_item(record.data), delay=0.0)
            with suppress(StoreError):  # its lease ends
                await self._store.do(change)

    async def _run(self) -> None:
        renewed = asyncio.get_running_loop().time()
        shortest = min(options_of(joined).lease for joined in (*self._queues.values(), *self._pulled))
        while True:
            self._woken.clear()
            wait = _LONGEST_SLEEP
            try:
                for name, joined in self._queues.items():
                    wait = min(wait, await self._claim(name, joined))
                now = asyncio.get_running_loop().time()
                if now - renewed >= shortest / 3:
                    renewed = now
                    await self._keep_leases()
            except StoreError as error:
                _logger.log(level_of(error), "could not claim items of queues; retrying in %g s: %s", _PAUSE, error)
                wait = _PAUSE
            with suppress(TimeoutError):
                async with asyncio.timeout(max(min(wait, shortest / 3), 0.0)):
                    await self._woken.wait()

    async def _claim(self, name: str, joined: Joined) -> float:
        """Begin as many items of a queue as may run; return the seconds until there may be more to do."""
        working, options = self._working[name], options_of(joined)
        free = options.concurrency - len(working)
        if free <= 0:
            return _LONGEST_SLEEP  # an item that ends wakes us
        held = frozenset((record.record_id, record.fence) for record in working.values())
        claimed = await self._store.do(ClaimItems(name, free, options.lease, held))
        assert not isinstance(claimed, Conflict)
        loop = asyncio.get_running_loop()
        for record in claimed[0]:
            task = loop.create_task(self._work(record, joined), name=f"bespeak-{record.record_id}")
            working[task] = record
            task.add_done_callback(lambda done: self._finished(name, done))
        if len(claimed[0]) == free:
            return _LONGEST_SLEEP
        following: float | None = await self._store.read(NextItem(name))
        return _LONGEST_SLEEP if following is None else max(following, 0.0)

    async def _keep_leases(self) -> None:
        """Renew those of the items on which this process works, and end those that agents let pass."""
        for name, joined in self._queues.items():
            items = tuple((record.record_id, record.fence) for record in self._working[name].values())
            if items:
                await self._store.do(RenewRecords(RUNNING, items, options_of(joined).lease))
        for joined in self._pulled:
            await self._store.do(ReturnItems(pulled_queue(self._dispatcher.server, joined)))

    def _finished(self, name: str, task: asyncio.Task[None]) -> None:
        record = self._working[name].pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and record is not None:
            level = level_of(error) if isinstance(error, StoreError) else logging.ERROR
            _logger.log(level, "%s is tried again when its lease ends: %s", record.record_id, error)
        self._woken.set()

    async def _work(self, record: Record, joined: Joined) -> None:
        """Do the work of an item once, and note what became of it."""
        item, options = decode_item(record.data), options_of(joined)
        attempt = record.fence - item.forgiven
        if attempt > options.retries + 1:
            message = f"The item was begun {attempt - 1} times, and each time the process ended before it was done."
            await self._bury(record, item, "interrupted", message)
            return
        call = restore_call(item.authority, self._dispatcher.server, joined.routes["run"].method)
        ended = judge_item(item, call if isinstance(call, Refused) else call.principal, options)
        if ended is not None:
            await self._bury(record, item, ended.code, ended.message)
            return
        assert not isinstance(call, Refused), "it is judged"

        def note(body: bytes) -> Command:
            if len(body) > MOST_RESULT:
                error = {"code": "result-too-large", "message": _TOO_LARGE}
                return end_item(record, item, DONE, self._server_id, error=error)
            return end_item(record, item, DONE, self._server_id, result=msgspec.json.decode(body))

        journal = ResultJournal(record.record_id, note)
        try:
            await run_function(call, joined.routes["run"], item.payload, number=str(attempt), journal=journal)
        except RefusedError as error:
            refused = error.refused
        else:
            return  # it was noted with the answer, or another process has taken it over
        details = {"details": refused.details} if refused.details else {}
        if may_pass_later(refused) and attempt <= options.retries:
            failed = {"code": refused.code, "message": refused.message, **details}
            again = msgspec.structs.replace(item, error=failed)
            await self._store.do(change_item(record, QUEUED, again, delay=delay_after(attempt)))
        else:
            await self._bury(record, item, refused.code, refused.message, **details)

    async def _bury(self, record: Record, item: Item, code: str, message: str, **details: Any) -> None:
        error = {"code": code, "message": message, **details}
        _logger.warning("%s of the queue %s has failed for good: %s", record.record_id, item.queue, error)
        await self._store.do(end_item(record, item, DEAD, self._server_id, error=error))

    @property
    def _server_id(self) -> str:
        return self._dispatcher.server.registrar.service.identity.server_id


def enqueue(item_id: str, queue: str, payload: dict[str, Any], authority: Authority) -> PutInChannel:
    """Return the command that adds an item for the service itself; a Conflict if it was added before."""
    item = Item(queue=queue, payload=payload, priority=5, authority=authority, joined=True)
    record = PutRecord(item_id, SUBMISSION, authority.agent_id, QUEUED, to_json(item), delay=0.0, lifetime=KEPT)
    return PutInChannel(record, queue)


def options_of(joined: Joined) -> QueueOptions:
    options = joined.participant.options
    assert isinstance(options, QueueOptions)
    return options


def judge_item(item: Item, principal: Principal | Refused, options: QueueOptions) -> Refused | None:
    """Return why nobody may work on an item any more: it ends with the authority of the agent that submitted it."""
    if isinstance(principal, Refused):
        return principal
    missing = [] if item.joined else principal.scopes.missing(options.scopes)
    message = f"The agent does not hold {', '.join(missing)} any more."
    return Refused(status.SCOPE_VIOLATION, "scope-violation", message) if missing else None


def pulled_queue(server: Server, joined: Joined) -> PulledQueue:
    return PulledQueue(joined.participant.name, options_of(joined).retries, server.registrar.service.identity.server_id)
