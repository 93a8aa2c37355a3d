"""CONNECT: channels that move what is new at a source to a destination (Tier 2 6.6).

A connection is a record. What is delivered and the cursor behind it are noted in one transaction, fenced by the lease
of the process that works on it: after a crash another one goes on, and nothing in the store is there twice.
Destinations outside get the same id for the same item. A destination that takes nothing now lets the connection wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from bespeak.contract.standard.integrate import LEAST_INTERVAL
from bespeak.errors import StoreError
from bespeak.extensions.integrate.channels import (
    BUS,
    CONNECT,
    NOTHING,
    Destination,
    Item,
    PublicationSource,
    Source,
    SourceEndedError,
    open_destination,
    open_source,
)
from bespeak.extensions.integrate.remote import divide
from bespeak.extensions.messages.store import SUBSCRIBED, SUBSCRIPTION, DropKey, PutInChannel
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.background import log_failure
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.extension import Cancelling, RecordKind
from bespeak.runtime.gates.authority import scope_gate
from bespeak.runtime.handling import (
    RefusedError,
    ResultJournal,
    effects,
    invalid,
    may_pass_later,
    new_id,
    refusal,
    stateful,
    to_json,
)
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import (
    ChangeRecord,
    ChangeWith,
    FindRecord,
    ListRecords,
    PutRecord,
    Record,
    RemoveRecord,
    RenewRecords,
)
from bespeak.state.store.store import Command, Conflict, Store

_logger = logging.getLogger(__name__)
CONNECTION: Final = "connection"
ACTIVE: Final = "active"
ENDED: Final = "ended"
MOST_CONNECTIONS: Final = 50  # connections of one agent that have not ended
KEPT: Final = 30 * 86400.0  # seconds for which a connection can be looked up after its end
_INTERVAL: Final = 60  # seconds between two looks at what is polled, if the caller does not say
_RATE: Final = 100  # items of a connection in a second, if the caller does not say
_LEASE: Final = 30.0
_WITHIN: Final = 20.0  # seconds for one delivery: less than the lease
_AT_ONCE: Final = 32  # deliveries of one process at the same time
_LONGEST_DELAY: Final = 60.0
_ALIAS: Final = ("collection:resources:", "collection:")  # names of a source for what a destination calls the second
# Refusals about an item: it is left out and counted. What is left of the others may pass, or ends the connection.
_ITEM: Final = frozenset({status.BAD_REQUEST, status.CONTENT_TOO_LARGE, status.UNPROCESSABLE})


class Conduit(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a connection."""

    source: str
    destination: str
    channel_type: str
    config: dict[str, Any]
    authority: Authority  # its end is that of the connection too
    cursor: Any = None
    moved: int = 0
    failed: int = 0
    attempts: int = 0  # failures since the last delivery
    error: dict[str, Any] | None = None  # the last failure
    moved_at: float | None = None
    ended: dict[str, Any] | None = None


decode = msgspec.json.Decoder(Conduit).decode


@stateful
async def connect(call: RoutedCall) -> Effects:
    """Answer CONNECT /. Both ends are looked at first, and an address outside has agreed to receive."""
    given, owner, connection_id = call.input, call.agent_id or "", new_id(CONNECTION)
    ends, config = (given["source"], given["destination"]), given.get("config", {})
    source = open_source(call, connection_id, ends[0], config)
    destination = open_destination(call, ends[1], config)
    fitting = [one for one in (destination.channel_type, source.channel_type) if one is not None]
    channel_type = given.get("channel_type", BUS if BUS in fitting else fitting[0])
    if channel_type not in fitting:
        raise invalid("channel_type", f"is {channel_type}, but this connection is one of: {', '.join(fitting)}.")
    await source.check(call)
    if await _comes_back(call.store, owner, *ends):
        message = f"What arrives at {ends[1][:80]!r} is moved to {ends[0][:80]!r} already, so it would never end."
        raise refusal(CONNECT, "connection-loops", message, field="/destination")
    await destination.check(call)
    authority, ttl = Authority.of(call.principal, call.request), given.get("ttl")
    if ttl is not None:
        authority = msgspec.structs.replace(authority, expires=min(time.time() + ttl, authority.expires or 1e15))
    conduit = Conduit(*ends, channel_type, config, authority)
    record = PutRecord(
        *(connection_id, CONNECTION, owner, ACTIVE, to_json(conduit)),
        key=to_json([owner, *ends]),
        delay=0.0,
        most=MOST_CONNECTIONS,
    )
    feed: tuple[Command, ...] = ()
    if isinstance(source, PublicationSource):
        counted = '{"data":{},"dropped":0}'
        subscription = PutRecord(f"sub-{connection_id}", SUBSCRIPTION, connection_id, SUBSCRIBED, counted)
        feed = (PutInChannel(subscription, ends[0].partition(":")[2]),)
    told: dict[str, Any] = {"connection_id": connection_id, "source": ends[0], "destination": ends[1]}
    told |= {"channel_type": channel_type, "status": ACTIVE, "channel": _settings(conduit)}
    told |= {"expires_at": write_instant(authority.expires)} if authority.expires is not None else {}
    exists = "The agent has a connection between these two already; CANCEL it first."
    return effects(
        [record, *feed],
        lambda results: {**told, "created_at": write_instant(results[0].created)},
        {
            "too-many": CONNECT.refuse("too-many-connections", f"The agent has {MOST_CONNECTIONS} connections."),
            "": lambda found: CONNECT.refuse("connection-exists", exists, connection_id=found.get("record_id")),
        },
    )


async def _comes_back(store: Store, owner: str, source: str, destination: str) -> bool:
    """Return True if connections of an agent lead from the destination to the source."""
    records: list[Record] = await store.read(ListRecords(CONNECTION, owner, (ACTIVE,), limit=MOST_CONNECTIONS))
    known = [decode(record.data) for record in records]
    ends = [(one.source.replace(*_ALIAS), one.destination) for one in known]
    reached, before = {destination.replace("channel:", "messages:")}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {end for start, end in ends if start in reached}
    return source.replace(*_ALIAS) in reached


def _settings(conduit: Conduit) -> dict[str, Any]:
    usual = LEAST_INTERVAL if conduit.source.startswith("messages:") else _INTERVAL
    return {"interval": usual, "rate": _RATE, **conduit.config}


async def _describe(server: Server, record: Record) -> Mapping[str, Any]:
    conduit = decode(record.data)
    told = {name: getattr(conduit, name) for name in ("source", "destination", "channel_type", "moved", "failed")}
    told |= {} if conduit.error is None else {"error": conduit.error, "attempts": conduit.attempts}
    if conduit.source.startswith("messages:") and server.store is not None:
        # Messages that came while so many waited that no more were kept.
        inbox: Record | None = await server.store.read(FindRecord((SUBSCRIPTION,), f"sub-{record.record_id}"))
        told |= {"dropped": inbox.content().get("dropped", 0)} if inbox is not None else {}
    return told | ({} if conduit.moved_at is None else {"moved_at": write_instant(conduit.moved_at)})


class Connections:
    """Works on the connections that this process has claimed, each in a task of its own."""

    def __init__(self, server: Server, store: Store) -> None:
        self._server = server
        self._store = store
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._working: dict[str, asyncio.Task[None]] = {}

    async def carry(self, records: Sequence[Record]) -> None:
        for record in records:
            # One that is worked on here has lost its claim to this one, and ends.
            await cancel_tasks(self._working.get(record.record_id))
            run = _Run(self._server, self._store, record, self._places)
            task = asyncio.get_running_loop().create_task(run.work(), name=f"bespeak-{record.record_id}")
            self._working[record.record_id] = task
            task.add_done_callback(self._finish)

    def _finish(self, task: asyncio.Task[None]) -> None:
        record_id = task.get_name().removeprefix("bespeak-")
        if self._working.get(record_id) is task:
            del self._working[record_id]
        log_failure(task, record_id)

    async def stop(self) -> None:
        """Stop working. Connections that were worked on go on in any process."""
        await cancel_tasks(*self._working.values())


class _LostError(Exception):
    """The connection was cancelled, or another process works on it."""


class _Run:
    """The work of one process on one connection, from a claim to its end."""

    def __init__(self, server: Server, store: Store, record: Record, places: asyncio.Semaphore) -> None:
        self._server, self._store, self._record, self._places = server, store, record, places
        self._conduit = decode(record.data)
        self._source: Source | None = None

    async def work(self) -> None:
        try:
            await self._hold()  # the claim may be shorter than a delivery takes
            await self._move()
        except (_LostError, SourceEndedError) as ended:
            if isinstance(ended, SourceEndedError):
                await self._end(Refused(status.GONE, "source-ended", "The source has no more items."))
        except asyncio.CancelledError:
            with suppress(StoreError):  # its lease ends
                await self._store.do(self._change(self._conduit, 0.0))
            raise
        finally:
            if self._source is not None:
                await self._source.close()

    async def _move(self) -> None:
        """Deliver what is new; return when there is nothing until the next look, or the destination is full."""
        settings = _settings(self._conduit)
        task = asyncio.current_task()
        while True:
            if task is not None and task.cancelling():
                raise asyncio.CancelledError  # a library may have taken the first one for the end of its own wait
            call = self._restore()
            if isinstance(call, Refused):
                return await self._end(call)
            try:
                if self._source is None:
                    self._source = open_source(call, self._record.record_id, self._conduit.source, settings)
                destination = open_destination(call, self._conduit.destination, settings)
                items = await self._source.take(call, self._conduit.cursor, min(settings["rate"] * 5, 100))
            except RefusedError as error:
                return await self._fail(error.refused)
            except (SourceEndedError, StoreError):
                raise
            except Exception as error:  # a source may fail in any way
                _logger.warning("the source of %s failed", self._record.record_id, exc_info=error)
                return await self._fail(Refused(status.SERVER_ERROR, "source-failed", "The source failed."))
            for part in _parts(items, destination.batch):
                refused = await self._deliver(destination, part)
                if refused is not None:
                    return await self._fail(refused)
            await asyncio.sleep(len(items) / settings["rate"])
            if not items and not self._source.waits:
                return await self._commit(self._change(self._conduit, settings["interval"]))
            if not items:
                await self._hold()

    def _restore(self) -> RoutedCall | Refused:
        call = restore_call(self._conduit.authority, self._server, "CONNECT")
        if isinstance(call, Refused):
            return call
        ended = self._conduit.authority.expires
        if ended is not None and ended <= time.time():  # also of the service itself
            return Refused(status.GONE, "ttl-ended", "The connection has reached its end.")
        return scope_gate(call) or call

    async def _deliver(self, destination: Destination, items: Sequence[Item]) -> Refused | None:
        """Deliver items and note that. A refusal of an item is noted too; return one that has nothing to do with it."""
        call = self._restore()  # a page takes as long as its destination wants
        if isinstance(call, Refused):
            return call
        before, cursor = self._conduit, items[-1].cursor
        values = [item.value for item in items if item.value is not NOTHING]
        also = tuple(command for item in items for command in item.also)
        key = f"{self._record.record_id}.{before.moved + before.failed + 1}"

        def advance(failed: int, error: dict[str, Any] | None = None) -> Conduit:
            moved = before.moved + len(values) - failed
            counts: dict[str, Any] = {"moved": moved, "failed": before.failed + failed, "attempts": 0}
            counts |= {"error": error or before.error, "moved_at": time.time()}
            return msgspec.structs.replace(before, cursor=cursor, **counts)

        def note(body: bytes) -> Command:
            self._conduit = advance(*_rejected(body))
            return ChangeWith(self._change(self._conduit, _LEASE), also)

        given: Refused | bool = False
        try:
            async with self._places, asyncio.timeout(_WITHIN):
                if values:
                    given = await destination.give(call, values, ResultJournal(key, note))
        except TimeoutError:
            given = Refused(status.TIMEOUT, "timeout", f"The destination took longer than {_WITHIN:g} s.")
        if isinstance(given, Refused) and given.status in _ITEM:
            self._conduit, given = advance(len(values), {"code": given.code, "message": given.message}), False
        elif given is False:
            self._conduit = advance(0) if values else msgspec.structs.replace(before, cursor=cursor)
        if isinstance(given, Refused):
            self._conduit = before
            return given
        if not given:
            await self._commit(self._change(self._conduit, _LEASE), *also)
        for item in items:
            if item.settled is not None:
                await item.settled()
        return None

    async def _hold(self) -> None:
        """Renew the claim while nothing comes; raise _LostError if it is lost."""
        await self._store.do(RenewRecords(ACTIVE, ((self._record.record_id, self._record.fence),), _LEASE))
        found: Record | None = await self._store.read(FindRecord((CONNECTION,), self._record.record_id))
        if found is None or (found.fence, found.state) != (self._record.fence, ACTIVE):
            raise _LostError

    async def _fail(self, refused: Refused) -> None:
        """Wait after a failure that may pass, the longer the more there were; end after any other."""
        if refused.code == "idempotency-lease-lost":
            raise _LostError
        if not (may_pass_later(refused) or refused.status == status.CONFLICT):
            return await self._end(refused)
        told = {"code": refused.code, "message": refused.message}
        attempts = self._conduit.attempts + 1
        failed = msgspec.structs.replace(self._conduit, attempts=attempts, error=told)
        await self._commit(self._change(failed, min(2.0 ** (attempts - 1), _LONGEST_DELAY)))
        return None

    async def _end(self, refused: Refused) -> None:
        _logger.info("%s ends: %s", self._record.record_id, refused.message)
        told = {"code": refused.code, "message": refused.message}
        ended = to_json(msgspec.structs.replace(self._conduit, ended=told))
        change = self._change(self._conduit, 0.0)
        ending = msgspec.structs.replace(change, state=ENDED, data=ended, delay=None, lifetime=KEPT)
        await self._commit(ending, *_free(self._record))

    def _change(self, conduit: Conduit, delay: float) -> ChangeRecord:
        delay = conduit.authority.within(self._server.principals, delay)
        fields: dict[str, Any] = {"fence": self._record.fence, "data": to_json(conduit), "delay": delay}
        return ChangeRecord(self._record.record_id, (CONNECTION,), (ACTIVE,), ACTIVE, **fields)

    async def _commit(self, *commands: Command) -> None:
        if isinstance(await self._store.do(*commands), Conflict):
            raise _LostError


def _parts(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    """Divide items into parts that a destination takes at once: IMPORT would go on with more in the background."""
    for start, part in divide([None if one.value is NOTHING else one.value for one in items]):
        end = start + len(part)
        yield from (items[at : min(at + most, end)] for at in range(start, end, most))


def _rejected(body: bytes) -> tuple[int, dict[str, Any] | None]:
    """Return how many rows IMPORT has rejected, and why the first one."""
    answer = msgspec.json.decode(body)
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, dict) or not result.get("rejected_count"):
        return 0, None
    return result["rejected_count"], {"code": "rejected", "message": result["rejected"][0]["reason"]}


def _free(record: Record) -> tuple[Command, ...]:
    """Return what ends with a connection: its name, and its subscription."""
    return DropKey(record.record_id), RemoveRecord(f"sub-{record.record_id}")


CONNECTION_KIND: Final = RecordKind(
    due=lambda server: server.part("connections").carry,
    cancelling=Cancelling((ACTIVE,), also=_free),
    describe=_describe,
)
