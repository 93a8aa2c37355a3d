"""Calls with a Task-ID are kept for RETRY, and repeated through the gates as if they came again (Tier 2 8.5)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.errors import StoreError
from bespeak.extensions.monitors.store import FAILED, KEPT_CALL, REPEATING, SCHEDULED, SUCCEEDED, KeepCall, ReleaseCalls
from bespeak.extensions.workflows.methods import decode_body
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall, StepCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.identity.authority import KEPT_HEADERS, Authority, restore_call
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.store import Conflict

if TYPE_CHECKING:
    from bespeak.runtime.dispatcher import Dispatcher
    from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

RETRY: Final = "RETRY"
KEPT: Final = 86400.0  # seconds for which a call can be repeated
MOST_KEPT: Final = 1000  # calls of one agent
MOST_BODY: Final = 64 * 1024  # bytes of a request, and of an answer, that are kept
MOST_ATTEMPTS: Final = 20  # attempts of a call, the first included, whatever the caller allows
LEASE: Final = 60.0  # seconds after which a repetition that its process has not renewed counts as interrupted
LONGEST_DELAY: Final = 3600.0
_AT_ONCE: Final = 256  # calls that one process repeats at the same time
_MOST_WAITING: Final = 5_000  # calls that wait for their turn, or are repeated; the rest is claimed again later
_FOR_AGENT: Final = 16  # calls of one agent among them: calls that take long must not hold up those of others
_TRANSIENT: Final = frozenset({status.TIMEOUT, status.RATE_LIMITED, status.UNAVAILABLE, status.SERVER_ERROR})
# Credentials are never stored: a call is repeated with the authority that was verified.
_HEADERS: Final = (*KEPT_HEADERS, names.IDEMPOTENCY_KEY, names.CONFIRMATION_ID, "content-type")


class KeptCall(msgspec.Struct, frozen=True, omit_defaults=True):
    task_id: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    authority: Authority
    attempts: int
    status: int
    answer: Any = None  # body of the answer; None if it is not JSON or too large
    delay: float | None = None  # seconds between two attempts; None for calls that are repeated once
    max_attempts: int | None = None
    replayed: bool = False  # True if the last answer was one that had been recorded earlier


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(KeptCall).decode


def call_id(agent_id: str, task_id: str) -> str:
    return "call-" + hashlib.sha256(f"{agent_id}\n{task_id}".encode(errors="surrogatepass")).hexdigest()[:32]


class Retries:
    def __init__(self, store: Store, dispatcher: Dispatcher, *, enabled: bool = True) -> None:
        """Create it; without `enabled` nothing is kept, and what was kept before is not repeated."""
        self._store = store
        self._enabled = enabled
        self._repeated: dict[str, KeptCall] = {}  # calls that this process repeats now, by the id of their record
        self._carried: dict[str, asyncio.Task[None]] = {}
        self._busy: Counter[str] = Counter()  # tasks of each agent
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_FOR_AGENT))
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._dispatcher = dispatcher

    def keeps(self, call: RoutedCall) -> bool:
        """Return True for a call that may be repeated later. What runs other calls is repeated as a workflow."""
        endpoint, request = call.route.endpoint, call.request
        return (
            self._enabled
            and names.TASK_ID in request.headers
            and call.agent_id is not None
            and not isinstance(call, StepCall)
            and not (endpoint.is_basic or endpoint.passes_on)
            and len(request.body) <= MOST_BODY
        )

    def note(self, call: RoutedCall, response: Response) -> KeepCall:
        request, agent_id = call.request, call.agent_id or ""
        task_id = request.headers[names.TASK_ID]
        record_id = call_id(agent_id, task_id)
        repeated = self._repeated.get(record_id)
        kept = KeptCall(
            task_id=task_id,
            method=request.method,
            path=request.path,
            query=request.query,
            headers={name: request.headers[name] for name in _HEADERS if name in request.headers},
            body=request.body,
            authority=Authority.of(call.principal, call.request),
            attempts=1 if repeated is None else repeated.attempts,
            status=response.status,
            answer=_answer(response),
            delay=None if repeated is None else repeated.delay,
            max_attempts=None if repeated is None else repeated.max_attempts,
            replayed=REPLAYED in response.headers,
        )
        asked = _encode([request.method, request.path, request.query, request.body])
        return KeepCall(
            record_id=record_id,
            owner=agent_id,
            key=f"{record_id} {hashlib.sha256(asked).hexdigest()}",
            state=_state_after(kept),
            data=_encode(kept).decode(),
            lifetime=KEPT,
            most=MOST_KEPT,
            delay=_delay_after(kept),
        )

    async def find(self, agent_id: str, task_id: str) -> tuple[Record, KeptCall] | None:
        record: Record | None = await self._store.read(FindRecord((KEPT_CALL,), call_id(agent_id, task_id)))
        return None if record is None else (record, _decode(record.data))

    async def start(self) -> None:
        """Take up repetitions that were interrupted; the store must be started."""
        if self._store.sole:  # whoever repeated them is dead
            try:
                await self._store.do(ReleaseCalls())
            except StoreError as error:
                _logger.warning("interrupted repetitions go on after their lease: %s", error)

    async def close(self) -> None:
        """Stop. What is under way is interrupted."""
        await cancel_tasks(*self._carried.values())

    def schedule(self, record: Record, kept: KeptCall, delay: float) -> ChangeRecord:
        return _change(record.record_id, (FAILED,), SCHEDULED, kept, version=record.version, delay=delay)

    async def repeat(self, record: Record, kept: KeptCall, call: Call) -> KeptCall | None:
        """Repeat a call for a verified caller; return None if another process does it."""
        begun = msgspec.structs.replace(kept, attempts=kept.attempts + 1)
        states = (FAILED, SCHEDULED, REPEATING)
        take = _change(record.record_id, states, REPEATING, begun, version=record.version, delay=LEASE)
        taken = await self._store.do(take)
        if isinstance(taken, Conflict):
            return None
        self._repeated[record.record_id] = begun
        holding = asyncio.get_running_loop().create_task(self._hold(record.record_id))
        try:
            called = self._dispatcher.repeat(call)
            response = called if isinstance(called, Response) else await called
        finally:
            holding.cancel()
            del self._repeated[record.record_id]
        answer, replayed = _answer(response), REPLAYED in response.headers
        ended = msgspec.structs.replace(begun, status=response.status, answer=answer, replayed=replayed)
        # What reached its endpoint has been noted with its answer; this is for a refusal of a gate. The next attempt is
        # scheduled in the same transaction in both cases, so that it is not lost with this process.
        after, delay = _state_after(ended), _delay_after(ended)
        await self._store.do(_change(record.record_id, (REPEATING,), after, ended, delay=delay))
        return ended

    async def _hold(self, record_id: str) -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            try:
                await self._store.do(ChangeRecord(record_id, (KEPT_CALL,), (REPEATING,), REPEATING, delay=LEASE))
            except StoreError as error:
                _logger.warning("could not renew the lease of %s: %s", record_id, error)

    async def carry(self, records: Sequence[Record]) -> None:
        """Repeat calls that are due, each when its agent and this process have a place for it."""
        for record in records:
            under_way = record.record_id in self._repeated or record.record_id in self._carried
            if not under_way and len(self._carried) < _MOST_WAITING:
                self._begin(record)

    def _begin(self, record: Record) -> None:
        task = asyncio.get_running_loop().create_task(self._take_turn(record), name=record.record_id)
        self._carried[record.record_id] = task
        self._busy[record.owner] += 1

        def end(task: asyncio.Task[None]) -> None:
            del self._carried[record.record_id]
            self._busy[record.owner] -= 1
            if not self._busy[record.owner]:
                del self._busy[record.owner], self._turns[record.owner]
            error = None if task.cancelled() else task.exception()
            if error is not None:
                shown = None if isinstance(error, StoreError) else error
                _logger.error("%s could not be repeated: %s", record.record_id, error, exc_info=shown)

        task.add_done_callback(end)

    async def _take_turn(self, record: Record) -> None:
        """Repeat a call that is due or was promised and interrupted; another interrupted one has failed."""
        async with self._turns[record.owner], self._places:
            kept = _decode(record.data)
            again = kept.delay is not None and kept.attempts < MOST_ATTEMPTS
            caller = restore_call(kept.authority, self._dispatcher.server, RETRY) if self._enabled else None
            if (record.state == SCHEDULED or again) and caller is not None and not isinstance(caller, Refused):
                await self.repeat(record, kept, restored(kept, caller, Connection(address=kept.authority.address)))
                return
            if isinstance(caller, Refused):
                _logger.info("%s is not repeated: %s", record.record_id, caller.message)
                error = {"error": {"code": caller.code, "message": caller.message}}
                kept = msgspec.structs.replace(kept, status=caller.status, answer=error)
            states = (SCHEDULED, REPEATING)
            await self._store.do(_change(record.record_id, states, FAILED, kept, fence=record.fence))


def _change(record_id: str, allowed_from: tuple[str, ...], state: str, kept: KeptCall, **fields: Any) -> ChangeRecord:
    return ChangeRecord(record_id, (KEPT_CALL,), allowed_from, state, data=_encode(kept).decode(), **fields)


def _delay_after(kept: KeptCall) -> float | None:
    """Return the seconds until a call is repeated; None if it is not."""
    if kept.delay is None or kept.status not in _TRANSIENT or kept.attempts >= (kept.max_attempts or 0):
        return None
    return min(kept.delay * 2.0 ** (kept.attempts - 1), LONGEST_DELAY)


def _state_after(kept: KeptCall) -> str:
    if status.is_success(kept.status):
        return SUCCEEDED
    return FAILED if _delay_after(kept) is None else SCHEDULED


def restored(kept: KeptCall, caller: Call, connection: Connection) -> Call:
    """Return the kept call with the authority of a verified caller."""
    call = Call(Request(kept.method, kept.path, kept.query, kept.headers, kept.body, connection), caller.server)
    call.principal = caller.principal
    return call


def _answer(response: Response) -> Any:
    return decode_body(response.body) if len(response.body) <= MOST_BODY else None
