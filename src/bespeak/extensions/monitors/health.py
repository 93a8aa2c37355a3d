"""The health of a server: its store, processes, background work, queues and upstreams, each as a component."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, Final, NamedTuple, TypeVar

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpTool
from bespeak.errors import StoreError
from bespeak.extensions.messages.posting import TOPIC
from bespeak.protocol import status
from bespeak.runtime.bindings.upstream_probe import find_unreachable
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.exchange import Exchange
from bespeak.runtime.server import Server
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.commands.records import RemoveRecord
from bespeak.state.store.commands.workers import MOST_COUNTED, CountWorkers, MeasureQueues, RenewWorker, WorkerCount
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

EVERY: Final = 5.0
SILENT: Final = 3 * EVERY  # seconds after which a process that has said nothing is in trouble
_KEPT: Final = 12 * EVERY  # seconds for which one that died is remembered


class Presence:
    """A task that renews the record of this process."""

    def __init__(self, store: Store, server_id: str) -> None:
        self._store = store
        self._server_id = server_id
        self._worker_id = f"worker-{secrets.token_hex(16)}"
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Say that the process is here, now and from time to time. Raises StoreError if that cannot be said now."""
        await self._renew()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-presence")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_tasks(self._task)
            with contextlib.suppress(StoreError):
                await self._store.do(RemoveRecord(self._worker_id))

    async def _renew(self) -> None:
        await self._store.do(RenewWorker(self._worker_id, self._server_id, _KEPT))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._renew()
            except StoreError as error:
                _logger.info("could not renew the record of this process: %s", error)


OK: Final = "ok"
FAILING: Final = "failing"
UPSTREAM: Final = "upstream of "  # beginning of the name of an upstream, before its endpoint
WITHIN: Final = 10.0  # seconds for an examination
LATE: Final = 60.0  # seconds after which what is due should have been done
Component = dict[str, Any]  # `{name, status}`, with a message where there is more to say


async def examine(server: Server) -> list[Component]:
    """Return the components of a server. Raises TimeoutError if one of them does not answer in time."""
    async with asyncio.timeout(WITHIN):
        found: list[Component] = [{"name": "server", "status": OK}]
        if server.store is not None:
            found += await _examine_store(server.store, server.registrar.service.identity.server_id)
        workflows = server.part("workflows")
        if workflows is not None:
            found.append({"name": "workflows", "status": OK, "message": f"{workflows.driven} are running here."})
        return found + await examine_upstreams(server.routes.endpoints.values())


async def examine_upstreams(endpoints: Iterable[Endpoint]) -> list[Component]:
    """Connect to the upstreams of published endpoints. The result does not say where they are."""
    external = [one for one in endpoints if one.is_listed and isinstance(one.handler, ExternalService | McpTool)]
    unreachable = {endpoint.key for endpoint, _, _ in await find_unreachable(external)}
    return [
        {"name": f"{UPSTREAM}{endpoint}", "status": FAILING if endpoint.key in unreachable else OK}
        for endpoint in external
    ]


def judge(components: Iterable[Component]) -> str:
    return FAILING if any(component["status"] == FAILING for component in components) else OK


async def _examine_store(store: Store, server_id: str) -> list[Component]:
    try:
        await store.do(UseNonce("check", secrets.token_hex(8), 1.0))
        queues = await store.read(MeasureQueues(TOPIC))
        # A process with a store of its own has no others beside it.
        workers = WorkerCount(1, 0) if store.sole else await store.read(CountWorkers(server_id, SILENT))
    except StoreError:
        return [{"name": "store", "status": FAILING, "message": "It cannot be written."}]
    message = f"{workers.alive} {'process works' if workers.alive == 1 else 'processes work'} on the store."
    if workers.silent:
        message += f" {workers.silent} more said nothing for {SILENT:g} s."
    return [
        {"name": "store", "status": OK},
        {"name": "workers", "status": FAILING if workers.silent else OK, "message": message},
        _queue("queue of deliveries", queues.posting_lag, f"{_count(queues.postings)} wait"),
        _queue("queue of what is due", queues.due_lag, ""),
        _queue("queue of submissions", 0.0, f"{_count(queues.submissions)} wait"),
    ]


def _queue(name: str, lag: float, waiting: str) -> Component:
    """Return the component of a queue. It is failing if nobody takes from it in time."""
    late = "" if lag < 1 else f"the oldest is {lag:.0f} s late"
    message = ", ".join(part for part in (waiting, late) if part) or "nothing is late"
    return {"name": name, "status": FAILING if lag > LATE else OK, "message": f"{message[0].upper()}{message[1:]}."}


def _count(number: int) -> str:
    return str(number) if number < MOST_COUNTED else f"{MOST_COUNTED} or more"


_KEPT_CALLS: Final = 256  # calls of each endpoint that are remembered
_MOST_KEYS: Final = 1000  # endpoints that are remembered: callers of ROUTE choose paths of other services
WINDOW: Final = 300.0  # seconds for which a call counts

Key = tuple[str, str]
_T = TypeVar("_T")


class Summary(NamedTuple):
    calls: int = 0
    failed: int = 0
    seconds: float = 0.0  # sum of the times they took

    def __add__(self, other: tuple[object, ...]) -> Summary:
        assert isinstance(other, Summary)
        return Summary(self.calls + other.calls, self.failed + other.failed, self.seconds + other.seconds)


class _ObservedCall(NamedTuple):
    at: float
    seconds: float
    failed: bool


def _remember(calls: dict[Key, deque[_T]], key: Key, call: _T, most: int) -> None:
    """Add a call of an endpoint. The endpoint that was called last stands at the end, and the first makes room."""
    kept = calls[key] = calls.pop(key) if key in calls else deque(maxlen=_KEPT_CALLS)
    kept.append(call)
    if len(calls) > most:
        del calls[next(iter(calls))]


class CallStatistics:
    def __init__(self) -> None:
        self._seen: dict[Key, deque[_ObservedCall]] = {}
        self._running: Counter[Key] = Counter()

    def __call__(self, exchange: Exchange) -> None:
        route = exchange.call.route
        if route is not None and exchange.seconds is not None and not exchange.replayed:
            self.note(route.endpoint.key, exchange.seconds, exchange.response.status)

    def note(self, key: Key, seconds: float, code: int) -> None:
        """Take in a call of an endpoint. A refusal is not a failure of the endpoint; an error of the server is."""
        failed = code >= status.SERVER_ERROR or code == status.TIMEOUT
        _remember(self._seen, key, _ObservedCall(time.monotonic(), seconds, failed), _MOST_KEYS)

    @contextmanager
    def running(self, key: Key) -> Iterator[None]:
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]

    def count_running(self, key: Key) -> int:
        """Return the number of calls that were handed to an endpoint here and have not ended."""
        return self._running[key]

    def find_latency(self, key: Key) -> float | None:
        """Return the median of the recent times of an endpoint; None if it was not called."""
        times = [one.seconds for one in self._recent(key)]
        return median(times) if times else None

    def summarize(self, key: Key) -> Summary:
        recent = self._recent(key)
        return Summary(len(recent), sum(one.failed for one in recent), sum(one.seconds for one in recent))

    def _recent(self, key: Key) -> list[_ObservedCall]:
        since = time.monotonic() - WINDOW
        return [one for one in self._seen.get(key, ()) if one.at >= since]


_NEAR: Final = 4  # factor by which the sizes of two inputs may differ to be compared
_ENOUGH: Final = 8  # calls of about the same size that are preferred to calls of any size
MOST_KEYS: Final = 10_000  # endpoints that are remembered: agents choose the paths of those that they propose


class Sample(NamedTuple):
    size: int  # bytes of the body
    seconds: float
    agent_id: str | None = None


class CostHistory:
    """A subscriber of exchanges. It remembers the calls of this process only."""

    def __init__(self) -> None:
        self._samples: dict[Key, deque[Sample]] = {}

    def __call__(self, exchange: Exchange) -> None:
        route = exchange.call.route
        if route is None or exchange.seconds is None or exchange.replayed:
            return
        if status.is_success(exchange.response.status):
            sample = Sample(len(exchange.call.request.body), exchange.seconds, exchange.call.agent_id)
            _remember(self._samples, route.endpoint.key, sample, MOST_KEYS)

    def find_own(self, key: Key, agent_id: str) -> list[float]:
        """Return the seconds of an agent's own calls of an endpoint."""
        return [one.seconds for one in self._samples.get(key, ()) if one.agent_id == agent_id]

    def find(self, key: Key, size: int) -> Sequence[Sample]:
        """Return earlier calls of an endpoint: those with an input of about this size, if there are enough."""
        known = self._samples.get(key, ())
        near = [one for one in known if size <= _NEAR * (one.size + 64) and one.size <= _NEAR * (size + 64)]
        return near if len(near) >= _ENOUGH else list(known)
