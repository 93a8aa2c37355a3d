"""A failed workflow is repeated from the steps that failed, with as much time as it had."""

from __future__ import annotations

import time

import msgspec

from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.workflows.spec import Spec, StepSpec, decode, encode, repeat_commands
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.commands.steps import JournalSteps, StepRow

SPEC = Spec(
    method="CHAIN",
    steps=(StepSpec("BOOK"), StepSpec("PAY")),
    authority=Authority("a" * 64, (), {}),
    deadline=1060.0,
)
RECORD = Record(
    "chain-1", "workflow", "a" * 64, None, "failed", 3, encode(SPEC).decode(), 1000.0, 1001.0, None, 2, 1e15
)
DONE, BROKEN = StepRow(1, 1, "done", 200, "{}"), StepRow(2, 1, "failed", 500, "{}")


def test_only_failed_steps_are_tried_again() -> None:
    before = time.time()
    commands = repeat_commands(RECORD, (DONE, BROKEN))
    assert isinstance(commands, tuple)
    change, journal = commands
    assert isinstance(change, ChangeRecord)
    assert isinstance(journal, JournalSteps)
    assert journal.rows == (msgspec.structs.replace(BROKEN, state="pending"),)
    assert decode(change.data or "").deadline >= before + 60.0


def test_a_workflow_whose_steps_were_undone_is_not_repeated() -> None:
    undone = msgspec.structs.replace(DONE, state="undone")
    assert repeat_commands(RECORD, (undone, BROKEN)) == "steps of chain-1 have been undone"
