"""The journal of workflows: what became of each step, written in the transaction of the step itself."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store.commands import records
from bespeak.state.store.commands.records import SOON, TOPIC, topic_of, wake
from bespeak.state.store.store import Command, Conflict, Grouping, Notify, Result, Row, Statement, Steps

WORKFLOW: Final = records.WORKFLOW
RUNNING: Final = "running"
WAITING: Final = records.WAITING
PAUSED: Final = "paused"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
CANCELLING: Final = "cancelling"  # what was done is being undone
ENDED: Final = (COMPLETED, FAILED, CANCELLED)
DONE: Final = "done"
STARTED: Final = "started"  # begun, and not to be begun again: what becomes of it is not known if its process dies
PENDING: Final = "pending"  # to be tried again
SKIPPED: Final = "skipped"
UNDONE: Final = "undone"
NOT_UNDONE: Final = "not-undone"  # done, and what should undo it has failed


class StepRow(msgspec.Struct, frozen=True):
    """What became of a step."""

    number: int
    attempt: int
    state: str  # done, skipped, failed, waiting, pending, started, undone or not-undone
    code: int  # status of the answer; 0 if the step was not called
    output: str  # output of the step, or its error, as JSON


_PARTS: Final = ("rows", {"number": "bigint", "attempt": "bigint", "state": "text", "code": "bigint", "output": "text"})
_WRITE: Final = "INSERT INTO steps (workflow_id, number, attempt, state, code, output)"
_OVER: Final = (
    "ON CONFLICT (workflow_id, number) DO UPDATE SET "
    "attempt = excluded.attempt, state = excluded.state, code = excluded.code, output = excluded.output"
)
_WRITE_MANY: Final = f"""
    {_WRITE} SELECT c.record_id, p.number, p.attempt, p.state, p.code, p.output
    FROM {{parts}} AS p JOIN {{change}} AS c USING (n) {_OVER}
"""


def _state(_: Any, row: Row | None) -> Any:
    return Conflict("claim-lost") if row is None else row[1]


def _write(workflow_id: str, rows: tuple[StepRow, ...]) -> Steps:
    for row in rows:
        yield Statement(
            f"{_WRITE} VALUES (?, ?, ?, ?, ?, ?) {_OVER}",
            (workflow_id, row.number, row.attempt, row.state, row.code, row.output),
        )
    return None


class NoteSteps(Command, frozen=True):
    """Note what became of steps, if the claim still holds.

    It leaves the workflow as it is, so that a step is one row; others cannot claim the workflow before it is written.
    """

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"workflow_id": "text", "fence": "bigint"},
        parts=_PARTS,
        # By the key alone: with the kind, too, PostgreSQL may read all workflows instead.
        change="""
            SELECT i.n, r.record_id, r.state FROM {input} AS i JOIN records AS r
            ON r.record_id = i.workflow_id AND r.fence = i.fence FOR SHARE OF r
        """,
        after=_WRITE_MANY,
        answer="SELECT n, state FROM {change}",
        result=_state,
        rows=lambda command: (("steps", command.workflow_id, *(row.number for row in command.rows)),),
        shared=lambda command: ("records", command.workflow_id),
    )
    workflow_id: str
    fence: int
    rows: tuple[StepRow, ...]

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: claim-lost."""
        found = yield Statement(
            "SELECT state FROM records WHERE record_id = ? AND fence = ? {lock}", (self.workflow_id, self.fence)
        )
        if not found:
            return Conflict("claim-lost")
        yield from _write(self.workflow_id, self.rows)
        return found[0][0]


class JournalSteps(Command, frozen=True):
    """Note what became of steps, renew the lease and perhaps end the workflow, if the claim still holds.

    A workflow that was paused or cancelled in the meantime keeps that state: the result of its step is not lost.
    """

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={
            **dict.fromkeys(("workflow_id", "state", "expected"), "text"),
            **dict.fromkeys(("lease", "delay", "kept"), "float8"),
            "fence": "bigint",
        },
        parts=_PARTS,
        change=f"""
            UPDATE records AS r SET state = CASE WHEN r.state = i.expected THEN i.state ELSE r.state END,
                version = r.version + 1, updated = {{now}}, expires = coalesce({{now}} + i.kept, r.expires),
                due = CASE WHEN r.state <> i.expected THEN r.due
                    WHEN i.state NOT IN {ENDED} THEN {{now}} + coalesce(i.delay, i.lease) END
            FROM {{input}} AS i WHERE r.record_id = i.workflow_id AND r.fence = i.fence
            RETURNING i.n, r.record_id, r.state
        """,
        after=_WRITE_MANY,
        answer="SELECT n, state FROM {change}",
        result=_state,
        rows=lambda command: (("records", command.workflow_id),),
        topics=lambda command: command.topics,
    )
    workflow_id: str
    fence: int
    rows: tuple[StepRow, ...]
    lease: float
    state: str = RUNNING  # state of the workflow from now on, unless somebody has paused or cancelled it
    expected: str = RUNNING  # state that it is expected to have
    delay: float | None = None  # seconds until it is due, if that is not the end of the lease
    kept: float | None = None  # seconds for which it is kept, if it has ended

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of those who wait for the end of workflows, or for what is due."""
        if self.state in ENDED:
            return (topic_of(WORKFLOW),)
        return (TOPIC,) if self.delay is not None and self.delay < SOON else ()

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: claim-lost."""
        ended = self.state in ENDED
        due = "NULL" if ended else "{now} + ?"
        expires = "expires" if self.kept is None else "{now} + ?"
        found = yield Statement(
            "UPDATE records SET state = CASE WHEN state = ? THEN ? ELSE state END, version = version + 1, "
            f"updated = {{now}}, due = CASE WHEN state = ? THEN {due} ELSE due END, expires = {expires} "
            "WHERE record_id = ? AND fence = ? RETURNING state",
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
        yield from _write(self.workflow_id, self.rows)
        for topic in self.topics:
            yield Notify(topic)
        return found[0][0]


class ReadSteps(Command, frozen=True):
    """Read the journal of a workflow."""

    workflow_id: str

    def steps(self) -> Result[list[StepRow]]:
        return (yield from ReadJournals((self.workflow_id,)).steps())[self.workflow_id]


class ReadJournals(Command, frozen=True):
    """Read the journals of workflows."""

    workflow_ids: tuple[str, ...]

    def steps(self) -> Result[dict[str, list[StepRow]]]:
        places = ", ".join("?" * len(self.workflow_ids))
        rows = yield Statement(
            "SELECT workflow_id, number, attempt, state, code, output FROM steps "
            f"WHERE workflow_id IN ({places}) ORDER BY workflow_id, number",
            self.workflow_ids,
        )
        found: dict[str, list[StepRow]] = {workflow_id: [] for workflow_id in self.workflow_ids}
        for workflow_id, *row in rows:
            found[workflow_id].append(StepRow(*row))
        return found


class FindTask(Command, frozen=True):
    """Find the workflows of an agent that calls with one Task-ID began."""

    owner: str
    task_id: str
    limit: int = 10

    def steps(self) -> Result[list[str]]:
        rows = yield Statement(
            f"SELECT record_id FROM records WHERE kind = '{WORKFLOW}' AND owner = ? AND target = ? "
            "AND expires > {now} ORDER BY created LIMIT ?",
            (self.owner, self.task_id, self.limit),
        )
        return [row[0] for row in rows]


class ReleaseWorkflows(Command, frozen=True):
    """Make workflows due whose process has died, where no other process can have claimed them."""

    def steps(self) -> Result[int]:
        return wake(f"kind = '{WORKFLOW}' AND state IN ('{RUNNING}', '{CANCELLING}')")
