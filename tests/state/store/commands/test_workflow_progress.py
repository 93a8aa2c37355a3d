"""How far a workflow is can be read without its outputs, and steps can be forgotten to be done again."""

from __future__ import annotations

import pytest
from tests.state.store.single import only

from bespeak.extensions.workflows.store import (
    BESIDE,
    Advance,
    ForgetSteps,
    JournalSteps,
    ReadAdvance,
    ReadSteps,
    StepRow,
)
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

INNER = 3 << 21 | 1
ROWS = (
    StepRow(1, 1, "done", 200, "{}", "BOOK /room"),
    StepRow(2, 1, "waiting", 0, "null", "sleep"),
    StepRow(INNER, 1, "failed", 500, "{}", "step pay"),
    StepRow(3 | BESIDE, 1, "done", 0, "[]", "items"),
    StepRow(0, 1, "failed", 500, "{}", "end"),
    StepRow(-1, 1, "arrived", 0, "1", "payment"),
)


async def begin(store: Store, *rows: StepRow) -> None:
    await store.do(PutRecord("w", "workflow", "ann", "running", "{}", due=7.0))
    await only(store, JournalSteps("w", 0, rows, 0.0, delay=None))


async def test_steps_that_have_ended_are_counted_without_signals_and_values(store: Store) -> None:
    await begin(store)
    found: Advance = await store.read(ReadAdvance("w"))
    assert (found.state, found.done, found.last, found.asked) == ("running", 0, 0, None)
    await only(store, JournalSteps("w", 0, ROWS, 0.0))
    found = await store.read(ReadAdvance("w"))
    assert (found.done, found.last, found.asked) == (2, INNER, "step pay")
    assert found.due is not None


async def test_forgotten_steps_are_gone_and_others_stay(store: Store) -> None:
    await begin(store, *ROWS)
    await store.do(ForgetSteps("w", (INNER, 3 | BESIDE, 0)))
    await store.do(ForgetSteps("v", (1,)), ForgetSteps("w", ()))
    assert [row.number for row in await store.read(ReadSteps("w"))] == [-1, 1, 2]
