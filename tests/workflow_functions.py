"""A travel service whose workflows are functions, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak import App, Context, Refusal
from bespeak.extensions.workflows.engine import Workflows
from bespeak.extensions.workflows.store import ReleaseWorkflows, SignalRun
from bespeak.runtime.handling import to_json
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict, Store

METHODS = ("RUN", "CHAIN", "PAUSE", "RESUME", "CANCEL", "CHECK", "CONFIRM", "RETRY", "REGISTER")


class Travel:
    """Endpoints that book and cancel, and note what they were called with."""

    def __init__(self) -> None:
        self.app = App("Travel", server_id="travel.example", operator="Travel", contact="ops@travel.example")
        self.done: list[str] = []
        self.keys: list[str | None] = []
        self.prices = iter(range(1, 1000))
        self.held: asyncio.Event | None = None  # what bookings wait for
        self.cancelling: asyncio.Event | None = None  # what cancellations wait for
        self.cancelled = 0  # cancellations that have begun
        self._declare(self.app)

    def _declare(self, app: App) -> None:
        @app.endpoint(
            "BOOK", "/room", impact="reversible", errors={"sold_out": "No room is free."}, description="Books a room."
        )
        async def book(guest: str, context: Context) -> dict[str, Any]:
            """Book a room.

            Outcome: A room is booked.
            """
            self.keys.append(context.request.headers.get("idempotency-key"))
            if self.held is not None:
                await self.held.wait()
            if guest == "nobody":
                raise Refusal("sold_out", "No room is free.", nights=2)
            if guest == "broken":
                raise ValueError("the handler is broken")
            self.done.append(f"book {guest}")
            return {"reservation_id": f"r-{guest}", "guest": guest}

        @app.endpoint("CANCEL", "/room/{reservation_id}", impact="reversible", errors={"too_late": "It is too late."})
        async def cancel(reservation_id: str) -> dict[str, Any]:
            """Cancel a room.

            Outcome: The room is free again.
            """
            if reservation_id == "r-late":
                raise Refusal("too_late", "It is too late.")
            self.cancelled += 1
            if self.cancelling is not None:
                await self.cancelling.wait()
            self.done.append(f"cancel {reservation_id}")
            return {}

        @app.endpoint("QUERY", "/fares", impact="informational")
        async def price() -> dict[str, int]:
            """Return a price.

            Outcome: The price is returned.
            """
            return {"price": next(self.prices)}

    @asynccontextmanager
    async def serving(self, store: Store | None = None, **fields: Any) -> AsyncIterator[StatefulBench]:
        service = self.app.service()
        async with keeping(
            *service.endpoints, participants=service.participants, methods=METHODS, store=store, **fields
        ) as bench:
            yield bench

    @asynccontextmanager
    async def restarted(self, place: str) -> AsyncIterator[StatefulBench]:
        """Serve again, as after the lease of a killed process has ended."""
        store = open_store(place)
        await store.start()
        await store.do(ReleaseWorkflows())  # before a server has claimed them: they would be driven twice
        await store.close()
        async with self.serving(open_store(place)) as bench:
            yield bench


async def run(bench: StatefulBench, name: str, given: Any, **headers: str) -> Reply:
    """Send RUN with the scope for it."""
    return await bench.send(
        "RUN", "/", {"procedure_id": name, "input": given}, **{"authority_scope": "activation:run", **headers}
    )


async def begin(bench: StatefulBench, name: str, *, agent: str = AGENT, **given: Any) -> str:
    """Begin a run and return its id."""
    reply = await run(bench, name, given, agent=agent, prefer="respond-async")
    assert reply.status in (200, 202), reply.json
    run_id: str = reply.json["result"]["run_id"]
    return run_id


async def ended(bench: StatefulBench, run_id: str, *states: str) -> Any:
    """Return the workflow when it is in one of the states; by default, when it has ended."""
    states = states or ("completed", "failed", "cancelled")
    async with asyncio.timeout(20):
        while True:
            found = await bench.bench.server.part("workflows").find(run_id)
            if found.record.state in states:
                return found
            await asyncio.sleep(0.005)


def output(workflow: Any) -> Any:
    """Return the result or the error of a run."""
    return next(msgspec.json.decode(row.output) for row in workflow.rows if row.number == 0)


def asked(workflow: Any) -> list[tuple[int, str, str]]:
    return [(row.number, row.asked, row.state) for row in workflow.rows if row.number > 0]


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


async def send_signal(workflows: Workflows, workflow_id: str, name: str, value: Any) -> str | Conflict:
    """Leave a signal for a workflow; return its state, or a Conflict."""
    done = await workflows.store.do(SignalRun(workflow_id, name, to_json(value)))
    return done if isinstance(done, Conflict) else str(done[0])
