"""Workflows are driven by one process at a time and taken over after a crash."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Refusal
from bespeak.extensions.workflows.journal import StepJournal, WorkflowJournal, answered
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.extensions.workflows.store import JournalSteps, NoteSteps, StepRow
from bespeak.protocol.exchange.messages import Context, Response
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, ListRecords, NextDue, PutEvent, PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Conflict, Then

pytestmark = pytest.mark.anyio


STEPS = tuple(StepSpec("BOOK", path) for path in ("/rooms", "/seats", "/cars"))


AUTHORITY = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})


def spec(*steps: StepSpec, method: str = "CHAIN", **fields: Any) -> str:
    made = Spec(method=method, steps=steps or STEPS, authority=AUTHORITY, deadline=time.time() + 60, **fields)
    return encode(made).decode()


def running(data: str, delay: float = 0.0, name: str = "chain-1") -> PutRecord:
    return PutRecord(name, "workflow", AGENT, "running", data, delay=delay)


def change(before: str, after: str, **fields: Any) -> ChangeRecord:
    return ChangeRecord("chain-1", ("workflow",), (before,), after, **fields)


def first_done(delay: float, name: str = "chain-1") -> JournalSteps:
    return JournalSteps(name, 0, (StepRow(1, 1, "done", 200, "{}"),), delay)


class Handler:
    """Notes its calls, and holds them until it is released."""

    def __init__(self, *, held: bool = False) -> None:
        self.called: list[str] = []
        self.release = asyncio.Event()
        if not held:
            self.release.set()

    async def handle(self, context: Context) -> dict[str, Any]:
        self.called.append(f"{context.method} {context.path}")
        await self.release.wait()
        return {}

    def endpoints(self, *calls: str) -> list[Endpoint]:
        calls = calls or tuple(f"BOOK {step.path}" for step in STEPS)
        return [make_endpoint(*call.split(), self.handle, impact="reversible") for call in calls]


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


async def until(bench: StatefulBench, *states: str) -> Any:
    async with asyncio.timeout(10):
        while True:
            found = await bench.bench.server.part("workflows").find("chain-1")
            if found.record.state in states:
                return found
            await asyncio.sleep(0.01)


async def test_an_abandoned_workflow_continues_after_its_last_step() -> None:
    handler = Handler()
    async with keeping(*handler.endpoints(), methods=("CHAIN",)) as bench:
        await bench.store.do(running(spec(), 0.1), first_done(0.1))
        found = await until(bench, "completed", "failed")
        assert [row.state for row in found.rows] == ["done", "done", "done"]
        assert handler.called == ["BOOK /seats", "BOOK /cars"]


async def test_the_lease_of_a_long_step_is_renewed_and_nobody_else_takes_it() -> None:
    handler = Handler(held=True)
    async with keeping(*handler.endpoints(), methods=("CHAIN",)) as bench:
        workflows = bench.bench.server.part("workflows")
        workflows._lease = 0.1
        await bench.store.do(running(spec()))
        async with asyncio.timeout(10):
            seen: set[float] = set()
            while len(seen) < 3 or not handler.called:
                seen.add((await workflows.find("chain-1")).record.due)
                await asyncio.sleep(0.01)
        assert len(handler.called) == 1
        handler.release.set()
        await until(bench, "completed")
        assert len(handler.called) == 3


UNDOABLE = StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms"))


async def test_a_workflow_that_is_cancelled_is_undone() -> None:
    handler = Handler()
    async with keeping(*handler.endpoints("CANCEL /rooms"), methods=("CHAIN",)) as bench:
        await bench.store.do(running(spec(UNDOABLE, StepSpec("BOOK", "/cars")), 30.0), first_done(30.0))
        await bench.store.do(change("running", "cancelling", delay=0.0))
        found = await until(bench, "cancelled")
        assert ([row.state for row in found.rows], handler.called) == (["undone"], ["CANCEL /rooms"])


async def test_a_step_that_runs_while_its_workflow_is_paused_and_resumed_runs_once() -> None:
    handler = Handler(held=True)
    async with keeping(*handler.endpoints(), methods=("CHAIN",)) as bench:
        workflows = bench.bench.server.part("workflows")
        await bench.store.do(running(spec()))
        await eventually(lambda: bool(handler.called))
        await bench.store.do(change("running", "paused"))
        fence = (await workflows.find("chain-1")).record.fence
        await bench.store.do(change("paused", "running", delay=0.0))
        await eventually(lambda: workflows._journals["chain-1"].fence != fence)
        handler.release.set()
        found = await until(bench, "completed", "failed")
        assert [row.state for row in found.rows] == ["done", "done", "done"]
        assert handler.called == [f"BOOK {step.path}" for step in STEPS]


async def test_a_step_that_runs_while_its_workflow_is_cancelled_is_undone_too() -> None:
    handler = Handler(held=True)
    endpoints = handler.endpoints("BOOK /rooms", "CANCEL /rooms", "PAY /rooms")
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        workflows = bench.bench.server.part("workflows")
        await bench.store.do(running(spec(UNDOABLE, StepSpec("PAY", "/rooms"))))
        await eventually(lambda: bool(handler.called))
        [changed] = await bench.store.do(change("running", "cancelling", delay=0.0))
        await eventually(lambda: workflows._journals["chain-1"].fence != changed.fence)
        handler.release.set()
        found = await until(bench, "cancelled")
        assert ([row.state for row in found.rows], handler.called) == (["undone"], ["BOOK /rooms", "CANCEL /rooms"])


async def test_a_server_alone_on_its_store_continues_what_it_left_without_waiting_for_leases() -> None:
    handler = Handler()
    store = open_store("memory", role="sole")
    await store.start()
    try:
        ids = [f"chain-{number}" for number in range(1, 31)]
        for name in ids:
            await store.do(running(spec(), 3600.0, name))
            await store.do(first_done(3600.0, name))
        async with keeping(*handler.endpoints(), store=store, methods=("CHAIN",)) as bench:
            async with asyncio.timeout(10):
                for name in ids:
                    while (await bench.bench.server.part("workflows").find(name)).record.state != "completed":
                        await asyncio.sleep(0.01)
        assert sorted(handler.called) == ["BOOK /cars"] * 30 + ["BOOK /seats"] * 30
    finally:
        await store.close()


async def test_a_server_that_stops_leaves_its_workflows_to_others_at_once(tmp_path: Path) -> None:
    handler, place = Handler(held=True), str(tmp_path / "s.db")
    async with keeping(*handler.endpoints(), store=open_store(place, role="sole"), methods=("CHAIN",)) as bench:
        await bench.store.do(running(spec()))
        await eventually(lambda: bool(handler.called))
        assert bench.bench.server.part("workflows").driven == 1
    store = open_store(place)
    try:
        assert (await store.read(NextDue(("workflow",))))["workflow"] <= 0
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
        await eventually(lambda: len(self.held) >= count)


async def begin_batch(bench: StatefulBench, *marks: str) -> None:
    steps = tuple(StepSpec("LOG", "/", parameters={"event_type": "step", "data": mark}) for mark in marks)
    await bench.store.do(running(spec(*steps, method="BATCH", parallel=True)))


async def logged(bench: StatefulBench) -> list[str]:
    return sorted(json.loads(record.data)["data"] for record in await bench.store.read(ListRecords("log", AGENT)))


async def test_step_on_its_way_during_another_claim_has_its_effect_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=("BATCH", "LOG")) as bench:
        workflows = bench.bench.server.part("workflows")
        units = HeldUnits(bench, monkeypatch, ("first", "second"))
        await begin_batch(bench, "first", "second")
        await units.until_held(2)
        fence = workflows._journals["chain-1"].fence
        with monkeypatch.context() as patch:
            # The note of the first step was made before this process claims the workflow again, the second one later.
            patch.setattr(StepJournal, "note", lambda *_: NoteSteps("chain-1", fence, ()))
            await bench.store.do(change("running", "running", delay=0.0))
            await eventually(lambda: workflows._journals["chain-1"].fence != fence)
            units.gates["first"].set()
            assert isinstance(await units.held["first"], Conflict)
        found = await until(bench, "completed", "failed")
        units.gates["second"].set()
        assert isinstance(await units.held["second"], Conflict)
        assert ([row.state for row in found.rows], await logged(bench)) == (["done", "done"], ["first", "second"])


async def test_step_done_by_another_process_meanwhile_has_its_effect_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=("BATCH", "LOG")) as bench:
        workflows = bench.bench.server.part("workflows")
        units = HeldUnits(bench, monkeypatch, ("first",))
        await begin_batch(bench, "first")
        await units.until_held(1)
        fence = workflows._journals["chain-1"].fence
        other = await bench.store.do(
            change("running", "running", delay=0.0, fence=fence),
            ClaimDue("workflow", 1, 0.0),
            PutEvent("log-1", AGENT, '{"data":"first"}', 10, 1000),
            NoteSteps("chain-1", fence + 1, (StepRow(1, 1, "done", 200, "{}"),)),
        )
        assert not isinstance(other, Conflict)
        await eventually(lambda: workflows._journals["chain-1"].fence != fence)
        units.gates["first"].set()
        assert isinstance(await units.held["first"], Conflict)
        await until(bench, "completed")
        assert await logged(bench) == ["first"]


READ = StepRow(1, 1, "done", 200, "1")
CHANGE = StepRow(2, 1, "done", 0, "null")


def noting(journal: WorkflowJournal, *, builtin: bool = False) -> StepJournal:
    def note(response: Response) -> NoteSteps:
        journal.add(msgspec.structs.replace(CHANGE, code=response.status))
        return journal.note()

    return StepJournal(journal, "w-2", note, builtin=builtin)


def test_pending_rows_are_written_together_and_only_by_notes() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.add(READ)
    command = noting(journal).note(Response(200, b'{"x":2}'))
    assert command is not None
    assert isinstance(command, NoteSteps)
    assert (command.fence, command.rows) == (3, (READ, StepRow(2, 1, "done", 200, "null")))
    assert journal.write().rows == ()
    journal = WorkflowJournal("w", 0, 30.0)
    journal.add(READ)
    assert journal.renew().rows == ()


@pytest.mark.parametrize("builtin", [False, True])
def test_pending_rows_are_written_again_if_the_store_builds_the_commands_twice(builtin: bool) -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.add(READ)
    note = noting(journal, builtin=builtin)
    first = note.note(Response(200, b"2"))
    assert first == note.note(Response(200, b"2"))
    assert first is not None
    assert len(first.rows) == 2


def test_failures_are_not_noted() -> None:
    journal = WorkflowJournal("w", 0, 30.0)
    assert noting(journal).note(Response(503, b"{}")) is None
    assert journal.rows == {}
    noting(journal).noted("paused", Response(200))
    assert journal.state == "paused"  # as the store has it


def test_the_next_claim_of_the_same_process_is_adopted_and_that_of_another_ends_the_notes() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    journal.adopt(4, "paused")
    assert (journal.fence, journal.state, journal.write().fence) == (4, "running", 4)
    journal = WorkflowJournal("w", 3, 30.0)
    journal.adopt(5, "running")
    assert (journal.state, journal.write().fence) == ("taken over", -1)


def test_a_claim_that_was_adopted_is_released_once() -> None:
    journal = WorkflowJournal("w", 3, 30.0)
    assert journal.release() is None
    journal.adopt(4, "cancelling")
    release = journal.release()
    assert release is not None
    assert (release.fence, release.state, release.delay) == (4, "cancelling", 0.0)
    assert (journal.release(), journal.write().fence) == (None, -1)


def test_the_output_of_a_built_in_method_is_in_its_envelope() -> None:
    assert answered(Response(200, b'{"status":200,"result":{"a":1}}'), builtin=True) == '{"a":1}'
    assert answered(Response(200, b""), builtin=True) == "null"


PROPERTIES = {"room": {"type": "string"}}


def book(given: dict[str, Any]) -> dict[str, Any]:
    if given["room"] == "taken":
        raise Refusal("room_unavailable", "Taken.")
    return {"reservation": given["room"]}


ENDPOINT = make_endpoint(
    "BOOK", "/rooms", book, impact="reversible", properties=PROPERTIES, required=("room",), errors=("room_unavailable",)
)


async def send(bench: StatefulBench, *rooms: str, **fields: Any) -> Any:
    calls = [{"method": "BOOK", "path": "/rooms", "parameters": {"room": room}} for room in rooms]
    return await bench.send("BATCH", "/", {"calls": calls, **fields})


@pytest.mark.requirement("METHODS-8.2-2", "METHODS-8.2-3", "METHODS-8.2-4")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_every_call_has_an_outcome_in_order(mode: str) -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, "1", "taken", "3", execution_mode=mode, partial_success=True)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["succeeded"], result["failed"]) == (200, "partial", 2, 1)
        assert [one.get("output") for one in result["results"]] == [{"reservation": "1"}, None, {"reservation": "3"}]
        assert result["results"][1]["error"]["code"] == "room_unavailable"


@pytest.mark.requirement("METHODS-8.2-5")
async def test_without_partial_success_a_failure_fails_the_batch_and_the_rest_is_reported() -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, "1", "taken")
        assert (reply.status, reply.error["code"], reply.error["succeeded"]) == (422, "batch-failed", 1)
        stopped = await send(bench, "taken", "2", execution_mode="sequential")
        assert [one["status"] for one in stopped.error["results"]] == ["failed", "pending"]


@pytest.mark.requirement("METHODS-8.2-5")
async def test_a_large_batch_runs_completely_and_one_with_a_call_of_nothing_not_at_all() -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        reply = await send(bench, *map(str, range(200)))
        assert (reply.json["result"]["status"], reply.json["result"]["succeeded"]) == ("completed", 200)
        reply = await bench.send("BATCH", "/", {"calls": [{"method": "BOOK", "path": "/cellars"}]})
        assert (reply.status, reply.error["code"]) == (422, "endpoint-not-found")


@pytest.mark.requirement("METHODS-8.2-7")
@pytest.mark.parametrize("reference", [{"$from": 3}, {"$from": "1.room"}, {"$expr": 3}, {"$from": "1", "x": 2}])
async def test_calls_that_refer_to_others_are_refused_and_none_runs(reference: dict[str, Any]) -> None:
    async with keeping(ENDPOINT, methods=("BATCH",)) as bench:
        calls = [{"method": "BOOK", "path": "/rooms", "parameters": {"room": one}} for one in ("1", reference)]
        assert (await bench.send("BATCH", "/", {"calls": calls})).refusal == (422, "invalid-calls")
