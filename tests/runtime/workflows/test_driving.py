"""A drive that has lost its claim changes nothing any more, and one that died while undoing goes on undoing."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.protocol.exchange.context import Context
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.workflows.driving import Drive
from bespeak.runtime.workflows.journal import WorkflowJournal
from bespeak.runtime.workflows.spec import Authority, Spec, StepSpec
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, ListRecords, PutRecord
from bespeak.state.store.commands.steps import ReadSteps, StepRow

pytestmark = pytest.mark.anyio

AUTHORITY = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})


def spec(*steps: StepSpec) -> Spec:
    return Spec(method="CHAIN", steps=steps, authority=AUTHORITY, deadline=time.time() + 60)


def drive(bench: Any, workflow: Spec, journal: WorkflowJournal) -> Drive:
    call = AUTHORITY.restore(bench.bench.server, "CHAIN")
    assert isinstance(call, RoutedCall)
    return Drive(bench.bench.dispatcher, bench.store, workflow, call, journal)


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
