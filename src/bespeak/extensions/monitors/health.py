"""The health of a server: its store, processes, background work, queues and upstreams, each as a component."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Iterable
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpTool
from bespeak.errors import StoreError
from bespeak.extensions.messages.posting import TOPIC
from bespeak.runtime.bindings.upstream_probe import find_unreachable
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.server import Server
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.commands.records import RemoveRecord
from bespeak.state.store.commands.workers import (
    MOST_COUNTED,
    CountWorkers,
    MeasureQueues,
    Queues,
    RenewWorker,
    WorkerCount,
)
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
        queues: Queues = await store.read(MeasureQueues(TOPIC))
        # A process with a store of its own has no others beside it.
        workers = WorkerCount(1, 0) if store.sole else await store.read(CountWorkers(server_id, SILENT))
    except StoreError:
        return [{"name": "store", "status": FAILING, "message": "It cannot be written."}]
    return [
        {"name": "store", "status": OK},
        _workers(workers),
        _queue("queue of deliveries", queues.posting_lag, f"{_count(queues.postings)} wait"),
        _queue("queue of what is due", queues.due_lag, ""),
        _queue("queue of submissions", 0.0, f"{_count(queues.submissions)} wait"),
    ]


def _workers(workers: WorkerCount) -> Component:
    message = f"{workers.alive} {'process works' if workers.alive == 1 else 'processes work'} on the store."
    if workers.silent:
        message += f" {workers.silent} more said nothing for {SILENT:g} s."
    return {"name": "workers", "status": FAILING if workers.silent else OK, "message": message}


def _queue(name: str, lag: float, waiting: str) -> Component:
    """Return the component of a queue. It is failing if nobody takes from it in time."""
    late = "" if lag < 1 else f"the oldest is {lag:.0f} s late"
    message = ", ".join(part for part in (waiting, late) if part) or "nothing is late"
    return {"name": name, "status": FAILING if lag > LATE else OK, "message": f"{message[0].upper()}{message[1:]}."}


def _count(number: int) -> str:
    return str(number) if number < MOST_COUNTED else f"{MOST_COUNTED} or more"
