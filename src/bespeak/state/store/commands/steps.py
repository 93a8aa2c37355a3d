"""The journal of workflows: what became of each step, written in the transaction of the step itself."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Notify, Statement, Steps
from bespeak.state.store.commands.records import NEVER, TOPIC, topic_of

WORKFLOW: Final = "workflow"
"""Kind of the records that are workflows."""

RUNNING: Final = "running"
WAITING: Final = "waiting"
"""A step waits for a confirmation or a decision."""
PAUSED: Final = "paused"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
CANCELLING: Final = "cancelling"
"""What was done is being undone."""
ENDED: Final = (COMPLETED, FAILED, CANCELLED)

DONE: Final = "done"
PENDING: Final = "pending"
"""To be tried again."""
SKIPPED: Final = "skipped"
UNDONE: Final = "undone"


class StepRow(msgspec.Struct, frozen=True):
    """What became of a step."""

    number: int
    attempt: int
    state: str
    """done, skipped, failed, waiting, pending or undone."""
    code: int
    """Status of the answer; 0 if the step was not called."""
    output: str
    """Output of the step, or its error, as JSON."""


class JournalSteps(Command, frozen=True):
    """Note what became of steps, renew the lease and perhaps end the workflow, if the claim still holds.

    A workflow that was paused or cancelled in the meantime keeps that state: the result of its step is not lost.
    """

    guards: ClassVar[bool] = True
    workflow_id: str
    fence: int
    rows: tuple[StepRow, ...]
    lease: float
    state: str = RUNNING
    """State of the workflow from now on, unless somebody has paused or cancelled it."""
    expected: str = RUNNING
    """State that it is expected to have."""
    delay: float | None = None
    """Seconds until it is due, if that is not the end of the lease."""
    kept: float | None = None
    """Seconds for which it is kept, if it has ended."""

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: claim-lost."""
        ended = self.state in ENDED
        due = "NULL" if ended else "{now} + ?"
        expires = "expires" if self.kept is None else "{now} + ?"
        found = yield Statement(
            "UPDATE records SET state = CASE WHEN state = ? THEN ? ELSE state END, version = version + 1, "
            f"updated = {{now}}, due = CASE WHEN state = ? THEN {due} ELSE due END, expires = {expires} "
            f"WHERE record_id = ? AND fence = ? AND kind = '{WORKFLOW}' RETURNING state",
            (
                *(self.expected, self.state, self.expected),
                *(() if ended else (self.lease if self.delay is None else self.delay,)),
                *(() if self.kept is None else (self.kept,)),
                self.workflow_id,
                self.fence,
            ),
        )
        if not found:
            return Conflict("claim-lost")
        for row in self.rows:
            yield Statement(
                "INSERT INTO steps (workflow_id, number, attempt, state, code, output, expires) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workflow_id, number) DO UPDATE SET "
                "attempt = excluded.attempt, state = excluded.state, code = excluded.code, output = excluded.output",
                (self.workflow_id, row.number, row.attempt, row.state, row.code, row.output, NEVER),
            )
        if self.kept is not None:
            yield Statement("UPDATE steps SET expires = {now} + ? WHERE workflow_id = ?", (self.kept, self.workflow_id))
        if ended:
            yield Notify(topic_of(WORKFLOW))
        elif self.delay is not None:
            yield Notify(TOPIC)
        return found[0][0]


class ReadSteps(Command, frozen=True):
    """Read the journal of a workflow."""

    workflow_id: str

    def steps(self) -> Steps:
        """Return a list of StepRows in order."""
        rows = yield Statement(
            "SELECT number, attempt, state, code, output FROM steps WHERE workflow_id = ? ORDER BY number",
            (self.workflow_id,),
        )
        return [StepRow(*row) for row in rows]


class WakeWaiting(Command, frozen=True):
    """Make workflows due that wait for a decision, because some decision was made."""

    def steps(self) -> Steps:
        """Return their number."""
        rows = yield Statement(
            "UPDATE records SET due = {now} "
            f"WHERE kind = '{WORKFLOW}' AND state = '{WAITING}' AND due > {{now}} RETURNING 1"
        )
        if rows:
            yield Notify(TOPIC)
        return len(rows)
