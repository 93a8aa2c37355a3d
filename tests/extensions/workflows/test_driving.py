"""A drive that has lost its claim changes nothing any more, and one that died while undoing goes on undoing."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak import Refusal
from bespeak.extensions.workflows import durable, steps, turn
from bespeak.extensions.workflows.journal import WorkflowJournal
from bespeak.extensions.workflows.spec import Spec, StepSpec
from bespeak.extensions.workflows.steps import StepsEngine
from bespeak.extensions.workflows.store import ReadSteps, StepRow
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus
from bespeak.state.store.commands.cases import ListCases
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, FindRecord, ListRecords, PutRecord

pytestmark = pytest.mark.anyio

AUTHORITY = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})


def spec(*steps: StepSpec) -> Spec:
    return Spec(method="CHAIN", steps=steps, authority=AUTHORITY, deadline=time.time() + 60)


def drive(bench: Any, workflow: Spec, journal: WorkflowJournal) -> StepsEngine:
    call = restore_call(AUTHORITY, bench.bench.server, "CHAIN")
    assert isinstance(call, RoutedCall)
    return StepsEngine(bench.bench.server.part("workflows"), workflow, call, journal)


async def test_the_effect_of_a_step_is_undone_if_another_process_has_taken_over() -> None:
    async with keeping(methods=("CHAIN", "LOG")) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=-1.0))
        await bench.store.do(ClaimDue("workflow", 1, 30.0))
        log = StepSpec("LOG", "/", {"event_type": "x", "data": 1})
        await drive(bench, spec(log), WorkflowJournal("w", 0, 30.0)).run()
        assert await bench.store.read(ListRecords("log")) == []
        await drive(bench, spec(log), WorkflowJournal("w", 1, 30.0)).run()
        assert len(await bench.store.read(ListRecords("log"))) == 1


async def test_a_chain_that_failed_is_undone_to_the_end_and_not_run_again() -> None:
    called: list[str] = []

    def note(context: Context) -> dict[str, Any]:
        called.append(f"{context.method} {context.path}")
        return {}

    endpoints = [make_endpoint(verb, "/rooms", note, impact="reversible") for verb in ("BOOK", "CANCEL", "PAY")]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=30.0))
        booked = StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms"))
        rows = (StepRow(1, 1, "done", 200, "{}"), StepRow(2, 1, "failed", 422, "{}"))
        await drive(bench, spec(booked, StepSpec("PAY", "/rooms")), WorkflowJournal("w", 0, 30.0, rows)).run()
        assert called == ["CANCEL /rooms"]
        assert [row.state for row in await bench.store.read(ReadSteps("w"))] == ["undone"]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("passes", ["before the first step", "during the first step"])
async def test_no_step_starts_after_timeout(monkeypatch: pytest.MonkeyPatch, passes: str, *, parallel: bool) -> None:
    called: list[str] = []
    now = time.time()
    clock = SimpleNamespace(time=lambda: now + 90 if called or passes.startswith("before") else now)
    monkeypatch.setattr(durable, "time", clock)
    monkeypatch.setattr(turn, "time", clock)
    monkeypatch.setattr(steps, "AT_ONCE", 1)

    def note(context: Context) -> dict[str, Any]:
        called.append(context.path)
        return {}

    # Calls that read are not committed, so that nothing waits between them.
    endpoints = [make_endpoint("FIND", path, note, impact="informational") for path in ("/rooms", "/halls")]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=30.0))
        begun = replace(spec(StepSpec("FIND", "/rooms"), StepSpec("FIND", "/halls")), parallel=parallel)
        journal = WorkflowJournal("w", 0, 30.0)
        assert await drive(bench, begun, journal).run()
        assert called == ([] if passes.startswith("before") else ["/rooms"])
        record = await bench.store.read(FindRecord(("workflow",), "w"))
        assert (journal.state, record.state, record.due) == ("failed", "failed", None)


async def test_a_drive_whose_lease_was_taken_begins_no_further_step() -> None:
    called: list[str] = []
    release = asyncio.Event()

    async def slow(context: Context) -> dict[str, Any]:
        called.append(context.path)
        await release.wait()
        return {}

    # The first step changes nothing, so that it is not its own write that tells of the loss.
    endpoints = [
        make_endpoint("FIND", "/rooms", slow, impact="informational"),
        make_endpoint("BOOK", "/rooms", slow, impact="reversible"),
    ]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=-1.0))
        journal = WorkflowJournal("w", 0, 0.03)
        driven = drive(bench, spec(StepSpec("FIND", "/rooms"), StepSpec("BOOK", "/rooms")), journal)
        task = asyncio.ensure_future(driven.run())
        async with asyncio.timeout(10):
            while not called:
                await asyncio.sleep(0.01)
            await bench.store.do(ChangeRecord("w", ("workflow",), ("running",), "running", delay=-1.0))
            await bench.store.do(ClaimDue("workflow", 1, 30.0))
            while journal.state == "running":
                await asyncio.sleep(0.01)
        release.set()
        assert await task is False
        assert called == ["/rooms"]


async def test_an_agent_that_is_suspended_during_a_step_takes_no_further_one() -> None:
    called: list[str] = []
    holder: list[Any] = []

    async def book(context: Context) -> dict[str, Any]:
        called.append(f"{context.method} {context.path}")
        if len(called) == 1:
            suspend = SetAgentStatus(AGENT, "DEACTIVATE", frozenset({"active"}), "suspended", "operator", "")
            await holder[0].store.do(suspend)
            await holder[0].bench.server.agents.refresh()
        return {}

    endpoints = [make_endpoint(verb, "/rooms", book, impact="reversible") for verb in ("BOOK", "CANCEL", "PAY")]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        holder.append(bench)
        await bench.store.do(
            PutAgent(AGENT, "porter", "active", f'{{"agent_id": "{AGENT}", "name": "porter"}}', "operator")
        )
        await bench.bench.server.agents.refresh()
        steps = [
            {"method": "BOOK", "path": "/rooms", "compensate": {"method": "CANCEL", "path": "/rooms"}},
            {"method": "PAY", "path": "/rooms"},
        ]
        reply = await bench.send("CHAIN", "/", {"steps": steps})
        assert called == ["BOOK /rooms"]
        receipt = reply.json["result"]
        assert (receipt["status"], receipt["steps"][1]["error"]["code"]) == ("failed", "agent-suspended")


async def test_references_copy_no_more_than_a_bounded_amount() -> None:
    value = {"value": {}}
    endpoint = make_endpoint("FETCH", "/copies", lambda given: given, properties=value, output=value)
    async with keeping(endpoint, methods=("CHAIN",)) as bench:
        steps = [{"method": "FETCH", "path": "/copies", "parameters": {"value": "x" * 1000}}]
        steps += [
            {"method": "FETCH", "path": "/copies", "parameters": {"value": [{"$from": f"{number}.value"}] * 100}}
            for number in range(1, 6)
        ]
        reply = await bench.send("CHAIN", "/", {"steps": steps, "context_propagation": True})
        receipt = reply.json["result"]
        assert [step["status"] for step in receipt["steps"]] == [
            "done",
            "done",
            "failed",
            "pending",
            "pending",
            "pending",
        ]
        assert receipt["steps"][2]["error"]["code"] == "invalid-reference"


async def test_what_was_read_is_noted_before_a_step_uses_it() -> None:
    prices, begun = iter((1, 2)), asyncio.Event()
    ordered: list[tuple[str, int]] = []

    def price(_: Context) -> dict[str, Any]:
        return {"price": next(prices)}

    async def order(context: Context) -> dict[str, Any]:
        ordered.append((context.request.headers["idempotency-key"], context.input["price"]))
        if len(ordered) == 1:
            begun.set()
            await asyncio.Event().wait()  # until the process dies
        return {}

    endpoints = [
        make_endpoint("QUERY", "/tariffs", price),
        make_endpoint("ORDER", "/paper", order, properties={"price": {"type": "integer"}}, impact="irreversible"),
    ]
    steps = (StepSpec("QUERY", "/tariffs", name="p"), StepSpec("ORDER", "/paper", {"price": {"$from": "p.price"}}))
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=30.0))
        chain = replace(spec(*steps), propagates=True, deadline=time.time() + 60)
        task = asyncio.create_task(drive(bench, chain, WorkflowJournal("w", 0, 30.0)).run())
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        noted = await bench.store.read(ReadSteps("w"))
        await drive(bench, chain, WorkflowJournal("w", 0, 30.0, noted)).run()
        assert ordered == [("w-2", 1), ("w-2", 1)]


@pytest.mark.parametrize(
    ("answers", "state"), [((503, 200), "undone"), ((503,) * 5, "not-undone"), ((422,), "not-undone")]
)
async def test_a_failed_undo_is_repeated_and_then_somebody_is_told(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], state: str
) -> None:
    monkeypatch.setattr(turn, "FIRST_DELAY", 0.0)
    left = list(answers)

    def cancel(_: Context) -> dict[str, Any]:
        answer = left.pop(0)
        if answer == 503:
            raise RuntimeError("the hotel does not answer")
        if answer == 422:
            raise Refusal("too_late", "The guest has arrived.")
        return {}

    endpoints = [
        make_endpoint("CANCEL", "/rooms", cancel, impact="reversible", errors=("too_late",)),
        make_endpoint("PAY", "/rooms", lambda _: {}, impact="reversible"),
    ]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=30.0))
        booked = StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms"))
        rows = (StepRow(1, 1, "done", 200, "{}"), StepRow(2, 1, "failed", 422, "{}"))
        await drive(bench, spec(booked, StepSpec("PAY", "/rooms")), WorkflowJournal("w", 0, 30.0, rows)).run()
        (first,) = await bench.store.read(ReadSteps("w"))
        assert (first.state, left) == (state, [])
        cases = await bench.store.read(ListCases(limit=10))
        assert len(cases) == (state == "not-undone")


async def test_a_chain_whose_time_runs_out_is_undone() -> None:
    called: list[str] = []

    async def note(context: Context) -> dict[str, Any]:
        called.append(f"{context.method} {context.path}")
        if context.method == "PAY":
            await asyncio.Event().wait()
        return {}

    endpoints = [make_endpoint(verb, "/rooms", note, impact="reversible") for verb in ("BOOK", "CANCEL", "PAY")]
    async with keeping(*endpoints, methods=("CHAIN",)) as bench:
        await bench.store.do(PutRecord("w", "workflow", AGENT, "running", "{}", delay=30.0))
        booked = StepSpec("BOOK", "/rooms", compensate=StepSpec("CANCEL", "/rooms"))
        chain = replace(spec(booked, StepSpec("PAY", "/rooms")), deadline=time.time() + 0.2)
        await drive(bench, chain, WorkflowJournal("w", 0, 30.0)).run()
        assert called == ["BOOK /rooms", "PAY /rooms", "CANCEL /rooms"]
        record = await bench.store.read(FindRecord(("workflow",), "w"))
        assert record.state == "failed"
        assert [row.state for row in await bench.store.read(ReadSteps("w"))] == ["failed", "undone", "failed"]
