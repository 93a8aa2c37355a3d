"""The health of a server: its store, its background work, its queues and its upstreams, each as a component."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpTool
from bespeak.errors import StoreError
from bespeak.runtime.bindings.upstream_probe import find_unreachable
from bespeak.runtime.delivery.posting import TOPIC
from bespeak.runtime.presence import SILENT
from bespeak.runtime.server import Server
from bespeak.state.store.commands.nonces import UseNonce
from bespeak.state.store.commands.queues import MOST_COUNTED, MeasureQueues, Queues
from bespeak.state.store.commands.workers import CountWorkers, Workers
from bespeak.state.store.store import Store

OK: Final = "ok"
FAILING: Final = "failing"
UPSTREAM: Final = "upstream of "
"""Beginning of the name of an upstream, before its endpoint."""
WITHIN: Final = 10.0
"""Seconds for an examination."""
LATE: Final = 60.0
"""Seconds after which what is due should have been done."""

Component = dict[str, Any]
"""`{name, status}`, with a message where there is more to say."""


async def examine(server: Server) -> list[Component]:
    """Return the components of a server. Raises TimeoutError if one of them does not answer in time."""
    async with asyncio.timeout(WITHIN):
        found: list[Component] = [{"name": "server", "status": OK}]
        if server.store is not None:
            found += await _examine_store(server.store, server.registrar.service.identity.server_id)
        if server.workflows is not None:
            found.append({"name": "workflows", "status": OK, "message": f"{server.workflows.driven} are running here."})
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
    """Return the state of the whole."""
    return FAILING if any(component["status"] == FAILING for component in components) else OK


async def _examine_store(store: Store, server_id: str) -> list[Component]:
    try:
        await store.do(UseNonce("check", secrets.token_hex(8), 1.0))
        queues: Queues = await store.read(MeasureQueues(TOPIC))
        # A process with a store of its own has no others beside it.
        workers = Workers(1, 0) if store.sole else await store.read(CountWorkers(server_id, SILENT))
    except StoreError:
        return [{"name": "store", "status": FAILING, "message": "It cannot be written."}]
    return [
        {"name": "store", "status": OK},
        _workers(workers),
        _queue("queue of deliveries", queues.posting_lag, f"{_count(queues.postings)} wait"),
        _queue("queue of what is due", queues.due_lag, ""),
        _queue("queue of submissions", 0.0, f"{_count(queues.submissions)} wait"),
    ]


def _workers(workers: Workers) -> Component:
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
