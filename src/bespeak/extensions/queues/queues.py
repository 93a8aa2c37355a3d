"""The queues of a server: items are claimed in order, done by functions of the service, and end with a result."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.participant import QueueOptions
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
    delay_after,
    end_item,
    read_item,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.background import ClaimLoop
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.handling import RefusedError, ResultJournal, may_pass_later, run_function, to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import PutRecord, Record, RenewRecords
from bespeak.state.store.store import Command, Conflict, Store

_logger = logging.getLogger(__name__)

MOST_RESULT: Final = 256 * 1024  # bytes of a result that are kept
_TOO_LARGE: Final = f"The result has more than {MOST_RESULT} bytes; it is not kept."


class Queues(ClaimLoop):
    """Works on the items of all queues of a service, in this process."""

    def __init__(self, dispatcher: Dispatcher, store: Store, queues: Mapping[str, Joined]) -> None:
        super().__init__(store, "queues", min(options_of(joined).lease for joined in queues.values()))
        self._dispatcher = dispatcher
        self._queues = {name: one for name, one in queues.items() if "run" in one.routes}
        self._pulled = [one for one in queues.values() if "read" in one.routes]

    def give_back(self, record: Record) -> Command:
        """Return the command by which an item waits again, for any process; its attempt counts."""
        return change_item(record, QUEUED, read_item(record), delay=0.0)

    async def claim(self) -> float:
        return min([math.inf, *[await self._claim(name, joined) for name, joined in self._queues.items()]])

    async def _claim(self, name: str, joined: Joined) -> float:
        held, options = self.held(name), options_of(joined)
        free = options.concurrency - len(held)
        if free <= 0:
            return math.inf  # an item that ends wakes us
        claimed = await self._store.do(ClaimItems(name, free, options.lease, frozenset(held)))
        assert not isinstance(claimed, Conflict)
        for record in claimed[0]:
            self.begin(name, record, self._work(record, joined))
        following = None if len(claimed[0]) == free else await self._store.read(NextItem(name))
        return math.inf if following is None else following

    async def keep_leases(self) -> None:
        """Renew those of the items on which this process works, and end those that agents let pass."""
        for name, joined in self._queues.items():
            if items := self.held(name):
                await self._store.do(RenewRecords(RUNNING, items, options_of(joined).lease))
        for joined in self._pulled:
            await self._store.do(ReturnItems(pulled_queue(self._dispatcher.server, joined)))

    async def _work(self, record: Record, joined: Joined) -> None:
        """Do the work of an item once, and note what became of it."""
        item, options = read_item(record), options_of(joined)
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
    if item.unreadable and item.error:
        return Refused(status.UNPROCESSABLE, item.error["code"], item.error["message"])
    if isinstance(principal, Refused):
        return principal
    missing = [] if item.joined else principal.scopes.missing(options.scopes)
    message = f"The agent does not hold {', '.join(missing)} any more."
    return Refused(status.SCOPE_VIOLATION, "scope-violation", message) if missing else None


def pulled_queue(server: Server, joined: Joined) -> PulledQueue:
    return PulledQueue(joined.participant.name, options_of(joined).retries, server.registrar.service.identity.server_id)
