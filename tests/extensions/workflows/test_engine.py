"""A workflow whose process has died goes on in another one, after what was done."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.workflows.journal import StepJournal
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.events import PutEvent
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, ListRecords, NextDue, PutRecord
from bespeak.state.store.commands.steps import JournalSteps, NoteSteps, StepRow
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Command, Conflict, Then

pytestmark = pytest.mark.anyio

STEPS = tuple(StepSpec("BOOK", path) for path in ("/rooms", "/seats", "/cars"))


def spec(agent: str = AGENT) -> str:
    authority = Authority(agent_id=agent, scopes=(), headers={"agent-id": agent})
    return encode(Spec(method="CHAIN", steps=STEPS, authority=authority, deadline=time.time() + 60)).decode()


async def until(bench: StatefulBench, *states: str) -> Any:
    async with asyncio.timeout(10):
        while True:
            found = await bench.bench.server.part("workflows").find("chain-1")
            if found.record.state in states:
                return found
            await asyncio.sleep(0.01)


async def test_an_abandoned_workflow_continues_after_its_last_step() -> None:
    called: list[str] = []

    def book(context: Context) -> dict[str, Any]:
        called.append(context.path)
        return {}

    endpoints = [make_endpoint("BOOK", step.path, book, impact="reversible") for step in STEPS]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        done = StepRow(1, 1, "done", 200, "{}")
        await bench.store.do(
            PutRecord("chain-1", "workflow", AGENT, "running", spec(), delay=0.1),
            JournalSteps("chain-1", 0, (done,), 0.1),
        )
        found = await until(bench, "completed", "failed")
        assert [row.state for row in found.rows] == ["done", "done", "done"]
        assert called == ["/seats", "/cars"]


async def test_the_lease_of_a_long_step_is_renewed_and_nobody_else_takes_it() -> None:
    begun: list[str] = []
    release = asyncio.Event()

    async def slow(_: dict[str, Any]) -> dict[str, Any]:
        begun.append("x")
        await release.wait()
        return {}

    endpoints = [make_endpoint("BOOK", step.path, slow, impact="reversible") for step in STEPS]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        workflows = bench.bench.server.part("workflows")
        workflows._lease = 0.1
        await bench.store.do(PutRecord("chain-1", "workflow", AGENT, "running", spec(), delay=0.0))
        async with asyncio.timeout(10):
            seen: set[float] = set()
            while len(seen) < 3 or not begun:
                seen.add((await workflows.find("chain-1")).record.due)
                await asyncio.sleep(0.01)
        assert begun == ["x"]
        release.set()
        await until(bench, "completed")
        assert begun == ["x", "x", "x"]


async def test_a_workflow_that_is_cancelled_is_undone() -> None:
    undone: list[str] = []

    def cancel(context: Context) -> dict[str, Any]:
        undone.append(context.path)
        return {}

    authority = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})
    steps = (StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms")), StepSpec("BOOK", "/cars"))
    data = encode(Spec(method="CHAIN", steps=steps, authority=authority, deadline=time.time() + 60)).decode()
    async with keeping(make_endpoint("CANCEL", "/rooms", cancel, impact="reversible"), methods=("CHAIN",)) as bench:
        await bench.store.do(
            PutRecord("chain-1", "workflow", AGENT, "running", data, delay=30.0),
            JournalSteps("chain-1", 0, (StepRow(1, 1, "done", 200, "{}"),), 30.0),
        )
        await bench.store.do(ChangeRecord("chain-1", ("workflow",), ("running",), "cancelling", delay=0.0))
        found = await until(bench, "cancelled")
        assert ([row.state for row in found.rows], undone) == (["undone"], ["/rooms"])


async def test_a_step_that_runs_while_its_workflow_is_paused_and_resumed_runs_once() -> None:
    begun: list[str] = []
    release = asyncio.Event()

    async def slow(context: Context) -> dict[str, Any]:
        begun.append(context.path)
        await release.wait()
        return {}

    endpoints = [make_endpoint("BOOK", step.path, slow, impact="reversible") for step in STEPS]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        workflows = bench.bench.server.part("workflows")
        await bench.store.do(PutRecord("chain-1", "workflow", AGENT, "running", spec(), delay=0.0))
        async with asyncio.timeout(10):
            while not begun:
                await asyncio.sleep(0.01)
        await bench.store.do(ChangeRecord("chain-1", ("workflow",), ("running",), "paused"))
        fence = (await workflows.find("chain-1")).record.fence
        await bench.store.do(ChangeRecord("chain-1", ("workflow",), ("paused",), "running", delay=0.0))
        async with asyncio.timeout(10):
            while workflows._journals["chain-1"].fence == fence:
                await asyncio.sleep(0.01)
        release.set()
        found = await until(bench, "completed", "failed")
        assert [row.state for row in found.rows] == ["done", "done", "done"]
        assert begun == [step.path for step in STEPS]


async def test_a_step_that_runs_while_its_workflow_is_cancelled_is_undone_too() -> None:
    called: list[str] = []
    release = asyncio.Event()

    async def slow(context: Context) -> dict[str, Any]:
        called.append(context.method)
        await release.wait()
        return {}

    endpoints = [make_endpoint(verb, "/rooms", slow, impact="reversible") for verb in ("BOOK", "CANCEL", "PAY")]
    authority = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})
    steps = (StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms")), StepSpec("PAY", "/rooms"))
    data = encode(Spec(method="CHAIN", steps=steps, authority=authority, deadline=time.time() + 60)).decode()
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("chain-1", "workflow", AGENT, "running", data, delay=0.0))
        async with asyncio.timeout(10):
            while not called:
                await asyncio.sleep(0.01)
            changed = await bench.store.do(
                ChangeRecord("chain-1", ("workflow",), ("running",), "cancelling", delay=0.0)
            )
            while bench.bench.server.part("workflows")._journals["chain-1"].fence == changed[0].fence:
                await asyncio.sleep(0.01)
        release.set()
        found = await until(bench, "cancelled")
        assert ([row.state for row in found.rows], called) == (["undone"], ["BOOK", "CANCEL"])


async def test_a_server_alone_on_its_store_continues_what_it_left_without_waiting_for_leases() -> None:
    called: list[str] = []

    def book(context: Context) -> dict[str, Any]:
        called.append(context.path)
        return {}

    endpoints = [make_endpoint("BOOK", step.path, book, impact="reversible") for step in STEPS]
    store = open_store("memory", role="sole")
    await store.start()
    try:
        ids = [f"chain-{number}" for number in range(1, 31)]
        for name in ids:
            await store.do(PutRecord(name, "workflow", AGENT, "running", spec(), delay=3600.0))
            await store.do(JournalSteps(name, 0, (StepRow(1, 1, "done", 200, "{}"),), 3600.0))
        async with keeping(*endpoints, store=store, methods=("CHAIN",)) as bench:
            async with asyncio.timeout(10):
                for name in ids:
                    while (await bench.bench.server.part("workflows").find(name)).record.state != "completed":
                        await asyncio.sleep(0.01)
        assert sorted(called) == ["/cars"] * 30 + ["/seats"] * 30
    finally:
        await store.close()


async def test_a_server_that_stops_leaves_its_workflows_to_others_at_once(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def forever(_: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    endpoints = [make_endpoint("BOOK", step.path, forever, impact="reversible") for step in STEPS]
    async with keeping(*endpoints, store=open_store(str(tmp_path / "s.db"), role="sole"), methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("chain-1", "workflow", AGENT, "running", spec(), delay=0.0))
        async with asyncio.timeout(10):
            await begun.wait()
        assert bench.bench.server.part("workflows").driven == 1
    store = open_store(str(tmp_path / "s.db"))
    try:
        due = await store.read(NextDue(("workflow",)))
        assert due["workflow"] <= 0
    finally:
        await store.close()


class HeldUnits:
    """Keeps the first unit that logs an event with each mark on its way to the store until it is released."""

    def __init__(self, bench: StatefulBench, monkeypatch: pytest.MonkeyPatch, marks: tuple[str, ...]) -> None:
        self._do = bench.store.do
        self.gates = {mark: asyncio.Event() for mark in marks}
        self.held: dict[str, asyncio.Task[Any]] = {}
        monkeypatch.setattr(bench.store, "do", self.do)

    async def do(self, *commands: Command, then: Then | None = None) -> Any:
        event = commands[0].data if isinstance(commands[0], PutEvent) else ""
        mark = next((mark for mark in self.gates if mark in event), None)
        if mark is None or mark in self.held:
            return await self._do(*commands, then=then)
        # As in the stores themselves: a unit that is on its way does not end with whoever waits for it.
        self.held[mark] = asyncio.get_running_loop().create_task(self._later(self.gates[mark], commands, then))
        return await asyncio.shield(self.held[mark])

    async def _later(self, gate: asyncio.Event, commands: tuple[Command, ...], then: Then | None) -> Any:
        await gate.wait()
        return await self._do(*commands, then=then)

    async def until_held(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.held) < count:
                await asyncio.sleep(0.01)


async def begin_batch(bench: StatefulBench, *marks: str) -> None:
    steps = tuple(StepSpec("LOG", "/", parameters={"event_type": "step", "data": mark}) for mark in marks)
    authority = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})
    spec = Spec(method="BATCH", steps=steps, authority=authority, deadline=time.time() + 60, parallel=True)
    await bench.store.do(PutRecord("chain-1", "workflow", AGENT, "running", encode(spec).decode(), delay=0.0))


async def logged(bench: StatefulBench) -> list[str]:
    return sorted(json.loads(record.data)["data"] for record in await bench.store.read(ListRecords("log", AGENT)))


async def test_a_step_on_its_way_when_its_workflow_is_claimed_again_has_its_effect_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with keeping(methods=("BATCH", "LOG")) as bench:
        workflows = bench.bench.server.part("workflows")
        units = HeldUnits(bench, monkeypatch, ("first", "second"))
        await begin_batch(bench, "first", "second")
        await units.until_held(2)
        fence = workflows._journals["chain-1"].fence
        with monkeypatch.context() as patch:
            # The note of the first step was made before this process claims the workflow again, the second one later.
            patch.setattr(StepJournal, "note", lambda *_: NoteSteps("chain-1", fence, ()))
            await bench.store.do(ChangeRecord("chain-1", ("workflow",), ("running",), "running", delay=0.0))
            async with asyncio.timeout(10):
                while workflows._journals["chain-1"].fence == fence:
                    await asyncio.sleep(0.01)
            units.gates["first"].set()
            assert isinstance(await units.held["first"], Conflict)
        found = await until(bench, "completed", "failed")
        units.gates["second"].set()
        assert isinstance(await units.held["second"], Conflict)
        assert ([row.state for row in found.rows], await logged(bench)) == (["done", "done"], ["first", "second"])


async def test_a_step_that_another_process_has_done_in_between_has_its_effect_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with keeping(methods=("BATCH", "LOG")) as bench:
        workflows = bench.bench.server.part("workflows")
        units = HeldUnits(bench, monkeypatch, ("first",))
        await begin_batch(bench, "first")
        await units.until_held(1)
        fence = workflows._journals["chain-1"].fence
        other = await bench.store.do(
            ChangeRecord("chain-1", ("workflow",), ("running",), "running", delay=0.0, fence=fence),
            ClaimDue("workflow", 1, 0.0),
            PutEvent("log-1", AGENT, '{"data":"first"}', 10, 1000),
            NoteSteps("chain-1", fence + 1, (StepRow(1, 1, "done", 200, "{}"),)),
        )
        assert not isinstance(other, Conflict)
        async with asyncio.timeout(10):
            while workflows._journals["chain-1"].fence == fence:
                await asyncio.sleep(0.01)
        units.gates["first"].set()
        assert isinstance(await units.held["first"], Conflict)
        await until(bench, "completed")
        assert await logged(bench) == ["first"]
