"""Repeating a failed workflow from the steps that failed."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from bespeak.runtime.authority import Authority
from bespeak.runtime.workflows.spec import decode, encode
from bespeak.state.store.command import Command
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.commands.steps import FAILED, PENDING, RUNNING, UNDONE, WORKFLOW, JournalSteps, StepRow


def repeat_commands(
    record: Record, rows: Sequence[StepRow], delay: float = 0.0, authority: Authority | None = None
) -> tuple[Command, ...] | str:
    """Return the commands that let a failed workflow run again, or why that is not possible.

    It has as much time as it had in the beginning, and the authority of whoever repeats it, if that is an agent.
    """
    if any(row.state == UNDONE for row in rows):
        return f"steps of {record.record_id} have been undone"
    spec = decode(record.data)
    deadline = time.time() + delay + spec.deadline - record.created
    again = msgspec.structs.replace(spec, deadline=deadline, authority=authority or spec.authority)
    failed = tuple(msgspec.structs.replace(row, state=PENDING) for row in rows if row.state == FAILED)
    data = encode(again).decode()
    return (
        ChangeRecord(record.record_id, (WORKFLOW,), (FAILED,), RUNNING, version=record.version, data=data, delay=delay),
        JournalSteps(record.record_id, record.fence, failed, 0.0, delay=delay),
    )
