"""Workflow functions: what they await is noted, and they go on where they were."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.service import AGENT
from tests.state.store.conftest import first, second, shared_place
from tests.stateful import StatefulBench
from tests.workflow_functions import Travel, asked, begin, ended, eventually, output, run

from bespeak import Context, ContractError, Refusal, Run, StepError, WaitTimeoutError
from bespeak.extensions.workflows import durable, functions
from bespeak.extensions.workflows.store import ReleaseWorkflows, SignalRun
from bespeak.state.store.commands.cases import DecideCase
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

__all__ = ["first", "second", "shared_place"]


class Trip(msgspec.Struct):
    room: str
    price: int


@asynccontextmanager
async def killed(travel: Travel, place: str) -> AsyncIterator[StatefulBench]:
    """Serve, and end as a process that is killed: nothing is released, and only leases end."""
    async with travel.serving(open_store(place)) as bench:
        yield bench
        workflows = bench.bench.server.part("workflows")
        for task in workflows._driving.values():
            task.cancel()
        await asyncio.gather(*workflows._driving.values(), return_exceptions=True)
        workflows._journals.clear()


async def test_a_function_calls_steps_and_endpoints_and_its_result_is_kept() -> None:
    travel = Travel()

    async def fare(day: date) -> Trip:
        return Trip("none", day.day)

    @travel.app.workflow("trip")
    async def trip(run: Run, guest: str, arrival: date) -> Trip:
        """Book a trip."""
        room = await run.call("BOOK", "/room", guest=guest)
        found = await run.step(fare, arrival)
        assert isinstance(found, Trip)
        return Trip(room["reservation_id"], found.price)

    async with travel.serving() as bench:
        given = {"guest": "ann", "arrival": "2026-12-24"}
        reply = await run(bench, "trip", given)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["output"]) == (200, "completed", {"room": "r-ann", "price": 24})
        found = await ended(bench, result["run_id"])
        assert asked(found) == [(1, "BOOK /room", "done"), (2, f"step {fare.__qualname__}", "done")]
        assert all(row.began is not None and row.ended is not None for row in found.rows if row.number)
        assert travel.keys == [f"{result['run_id']}-1"]
        report = (await bench.send("CHECK", "/", {"target": result["run_id"]})).json["result"]
        assert (report["status"], report["output"]) == ("completed", {"room": "r-ann", "price": 24})


async def test_input_is_checked_against_the_types_of_the_function() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run, guest: UUID) -> None:
        """Do nothing."""

    async with travel.serving() as bench:
        for given in ({}, {"guest": "ann"}, {"guest": 7}):
            reply = await run(bench, "trip", given)
            assert (reply.status, reply.json["error"]["code"]) == (422, "invalid-input"), given
        assert (await run(bench, "tour", {})).status == 404


class Interrupted:
    """A workflow of every kind of await, which waits at one of them until its process is killed."""

    def __init__(self, travel: Travel, at: str) -> None:
        self.at, self.travel = at, travel
        self.reached = asyncio.Event()
        self.killed = False
        self.calls: list[str] = []
        travel.app.workflow("trip")(self.trip())

    async def step(self, name: str) -> str:
        self.calls.append(name)
        if self.at == name and not self.killed:
            self.reached.set()
            await asyncio.Event().wait()
        return name

    def trip(self) -> Any:
        async def branch(run: Run, name: str) -> str:
            await run.call("BOOK", "/room", guest=name)
            return await run.step(self.step, name)

        async def trip(run: Run) -> dict[str, Any]:
            """Do one of everything."""
            price = await run.call("QUERY", "/fares")
            first = await run.step(self.step, "first")
            now, key, number = await run.now(), run.uuid(), run.random()
            await run.sleep(0.6)
            pair = await run.together(branch(run, "left"), branch(run, "right"), run.step(self.step, "middle"))
            mapped = await run.map(self.step, ["m1", "m2"])
            try:
                await run.call("BOOK", "/room", guest="nobody")
            except StepError as error:
                refused = [error.code, error.status, error.error["details"]]
            signal = await run.wait_for("payment")
            last = await run.step(self.step, "last")
            return {
                "price": price["price"],
                "now": now.isoformat(),
                "key": str(key),
                "number": number,
                "all": [first, *pair, *mapped, signal, last],
                "refused": refused,
            }

        return trip


@asynccontextmanager
async def restarted(travel: Travel, place: str) -> AsyncIterator[StatefulBench]:
    """Serve again after the lease of a killed process has ended."""
    async with travel.serving(open_store(place)) as bench:
        await bench.store.do(ReleaseWorkflows())
        yield bench


@pytest.mark.parametrize("at", ["first", "left", "right", "middle", "m2", "last"])
async def test_a_run_goes_on_where_its_process_was_killed(at: str, shared_place: str) -> None:
    travel = Travel()
    killing = Interrupted(travel, at)
    async with killed(travel, shared_place) as bench:
        run_id = await begin(bench, "trip")
        assert await bench.bench.server.part("workflows").signal(run_id, "payment", {"paid": 7}) in ("running", "sleeping")
        await eventually(killing.reached.is_set)
        before = await bench.bench.server.part("workflows").find(run_id)
    killing.killed = True
    async with restarted(travel, shared_place) as bench:
        found = await ended(bench, run_id)
        assert found.record.state == "completed", output(found)
        result = output(found)
        assert result["all"] == ["first", "left", "right", "middle", "m1", "m2", {"paid": 7}, "last"]
        assert result["price"] == 1, "what was read is not read again"
        assert result["refused"] == ["sold_out", 422, {"nights": 2}]
        for row in before.rows:
            if row.state == "done":
                assert row in found.rows, "what was noted stays as it was"
        assert sorted(travel.done) == ["book left", "book right"]
        repeated = [name for name in set(killing.calls) if killing.calls.count(name) > 1]
        assert set(repeated) <= {at, "left", "right", "middle", "m1"} | {at}
        assert at in repeated
