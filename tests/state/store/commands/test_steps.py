"""The journal of a workflow is written under its claim, and keeps what was done when it was paused."""

from __future__ import annotations

import asyncio

import pytest
from tests.state.store.single import only

from bespeak.extensions.workflows.store import (
    JournalSteps,
    NoteSteps,
    ReadJournals,
    ReadSteps,
    ReleaseWorkflows,
    StepRow,
)
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, FindRecord, PutRecord, WakeWaiting
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

ROW = StepRow(1, 1, "done", 200, '{"a":1}')


async def begin(store: Store) -> None:
    await store.do(PutRecord("w", "workflow", "ann", "running", "{}", delay=30.0))


async def state(store: Store) -> tuple[str, bool]:
    record = await store.read(FindRecord(("workflow",), "w"))
    return record.state, record.due is not None


async def test_rows_are_written_once_and_replaced_by_later_attempts(store: Store) -> None:
    await begin(store)
    failed = StepRow(2, 1, "failed", 503, "{}")
    assert await only(store, JournalSteps("w", 0, (ROW, failed), 30.0)) == "running"
    await only(store, JournalSteps("w", 0, (StepRow(2, 2, "done", 200, "{}"),), 30.0))
    assert await store.read(ReadSteps("w")) == [ROW, StepRow(2, 2, "done", 200, "{}")]


async def test_a_process_that_has_lost_its_claim_writes_nothing(store: Store) -> None:
    await begin(store)
    assert await only(store, JournalSteps("w", 1, (ROW,), 30.0)) == Conflict("claim-lost")
    assert await store.read(ReadSteps("w")) == []


async def test_a_pause_during_a_step_stays_and_the_row_too(store: Store) -> None:
    await begin(store)
    await store.do(ChangeRecord("w", ("workflow",), ("running",), "paused"))
    assert await only(store, JournalSteps("w", 0, (ROW,), 30.0, "completed")) == "paused"
    assert await state(store) == ("paused", False)
    assert await store.read(ReadSteps("w")) == [ROW]


async def test_the_end_is_written_with_the_last_row(store: Store) -> None:
    await begin(store)
    assert await only(store, JournalSteps("w", 0, (ROW,), 30.0, "completed", kept=60.0)) == "completed"
    assert await state(store) == ("completed", False)


async def test_only_the_workflow_that_waits_for_a_case_is_due_when_it_was_decided(store: Store) -> None:
    await begin(store)
    waits = StepRow(1, 1, "waiting", 262, "{}", waits_for="case-1")
    await only(store, NoteSteps("w", 0, (waits,)))
    assert await only(store, WakeWaiting("case-1")) == 0, "it runs"
    await only(store, JournalSteps("w", 0, (), 30.0, "waiting", delay=60.0))
    assert await only(store, WakeWaiting("case-2")) == 0
    assert await only(store, WakeWaiting("case-1")) == 1


async def test_a_note_leaves_the_workflow_as_it_is(store: Store) -> None:
    await begin(store)
    before = await store.read(FindRecord(("workflow",), "w"))
    assert await only(store, NoteSteps("w", 0, (ROW,))) == "running"
    assert await only(store, NoteSteps("w", 1, (StepRow(2, 1, "done", 200, "{}"),))) == Conflict("claim-lost")
    assert await store.read(FindRecord(("workflow",), "w")) == before
    assert await store.read(ReadJournals(("other", "w"))) == {"other": [], "w": [ROW]}


async def test_notes_of_many_steps_of_one_workflow_are_all_written(store: Store) -> None:
    await begin(store)
    rows = [StepRow(number, 1, "done", 200, "{}") for number in range(1, 20)]
    renewed = store.do(JournalSteps("w", 0, (), 30.0))
    done = await asyncio.gather(*(store.do(NoteSteps("w", 0, (row,))) for row in rows), renewed)
    assert set(map(str, done)) == {"['running']"}
    assert await store.read(ReadSteps("w")) == rows


async def test_released_workflows_are_due_but_not_those_that_wait(store: Store) -> None:
    await begin(store)
    await store.do(PutRecord("p", "workflow", "ann", "waiting", "{}", delay=30.0))
    assert await only(store, ReleaseWorkflows()) == 1
    assert [record.record_id for record in await only(store, ClaimDue("workflow", 9, 1.0))] == ["w"]


async def test_the_journal_goes_with_an_expired_workflow(store: Store) -> None:
    await begin(store)
    await only(store, JournalSteps("w", 0, (ROW,), 30.0, "completed", kept=-1.0))
    assert await only(store, PurgeExpired()) == 1
    assert await store.read(ReadSteps("w")) == []
