"""The journal of workflows: what became of each step, written in the transaction of the step itself."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.extensions.workflows import states
from bespeak.state.store.commands import records
from bespeak.state.store.commands.records import SOON, TOPIC, ChangeRecord, topic_of, wake
from bespeak.state.store.store import Command, Conflict, Grouping, Notify, Result, Statement, Steps, read_all

WORKFLOW: Final = records.WORKFLOW
END: Final = 0  # number of the row that says how the whole ended
BITS: Final = 21  # bits of the number of a row for each list around its step
BESIDE: Final = 1 << 62  # bit of the number of a row with what was computed beside a step
MOST_SIGNALS: Final = 1000  # signals of a workflow that nobody has waited for yet


class StepRow(msgspec.Struct, frozen=True, gc=False):
    """What became of a step, or of anything else that a workflow awaits. Signals have negative numbers."""

    number: int
    attempt: int
    state: str  # done, skipped, failed, waiting, pending, started, undone, not-undone, arrived or received
    code: int  # status of the answer; 0 if the step was not called
    output: str  # output of the step, or its error, as JSON
    asked: str = ""  # what was asked for, such as `BOOK /rooms`; the name of a signal
    digest: int = 0  # checksum of its input
    began: float | None = None  # time of the first attempt, in seconds since 1970
    ended: float | None = None
    undo: str | None = None  # call that undoes it, as JSON
    waits_for: str | None = None  # id of the case that it waits for


_NAMES: Final = StepRow.__struct_fields__
_INTEGERS: Final = dict.fromkeys(("number", "attempt", "code", "digest"), "bigint")
_TYPES: Final = {**_INTEGERS, "began": "float8", "ended": "float8"}  # of columns that are no text
_WRITE: Final = f"INSERT INTO steps (workflow_id, {', '.join(_NAMES)})"
_OVER: Final = "ON CONFLICT (workflow_id, number) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _NAMES[1:]
)
_WRITE_ONE: Final = f"{_WRITE} VALUES (?{', ?' * len(_NAMES)}) {_OVER}"
_WRITE_MANY: Final = f"""
    {_WRITE} SELECT c.record_id, {", ".join(f"p.{name}" for name in _NAMES)}
    FROM {{parts}} AS p JOIN {{change}} AS c USING (n) {_OVER}
"""
_CHANGE: Final = """
    UPDATE records SET state = CASE WHEN state = ? THEN ? ELSE state END, version = version + 1, updated = {now},
        due = CASE WHEN state = ? THEN {now} + ? ELSE due END, expires = coalesce({now} + ?, expires)
    WHERE record_id = ? AND fence = ? RETURNING state
"""


_NOTING: Final[dict[str, Any]] = {
    "parts": ("rows", {name: _TYPES.get(name, "text") for name in _NAMES}),
    "after": _WRITE_MANY,
    "answer": "SELECT n, state FROM {change}",
    "result": lambda _, row: Conflict("claim-lost") if row is None else row[1],
}


def _write(workflow_id: str, rows: tuple[StepRow, ...]) -> Steps:
    for row in rows:
        yield Statement(_WRITE_ONE, (workflow_id, *msgspec.structs.astuple(row)))
    return None


class NoteSteps(Command, frozen=True):
    """Note what became of steps, if the claim still holds.

    It leaves the workflow as it is, so that a step is one row; others cannot claim the workflow before it is written.
    """

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"workflow_id": "text", "fence": "bigint"},
        # By the key alone: with the kind, too, PostgreSQL may read all workflows instead.
        change="""
            SELECT i.n, r.record_id, r.state FROM {input} AS i JOIN records AS r
            ON r.record_id = i.workflow_id AND r.fence = i.fence FOR SHARE OF r
        """,
        **_NOTING,
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
        change=f"""
            UPDATE records AS r SET state = CASE WHEN r.state = i.expected THEN i.state ELSE r.state END,
                version = r.version + 1, updated = {{now}}, expires = coalesce({{now}} + i.kept, r.expires),
                due = CASE WHEN r.state <> i.expected THEN r.due
                    WHEN i.state NOT IN {states.ENDED} THEN {{now}} + coalesce(i.delay, i.lease) END
            FROM {{input}} AS i WHERE r.record_id = i.workflow_id AND r.fence = i.fence
            RETURNING i.n, r.record_id, r.state
        """,
        **_NOTING,
        rows=lambda command: (("records", command.workflow_id),),
        topics=lambda command: command.topics,
    )
    workflow_id: str
    fence: int
    rows: tuple[StepRow, ...]
    lease: float
    state: str = states.RUNNING  # state of the workflow from now on, unless somebody has paused or cancelled it
    expected: str = states.RUNNING  # state that it is expected to have
    delay: float | None = None  # seconds until it is due, if that is not the end of the lease
    kept: float | None = None  # seconds for which it is kept, if it has ended

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of those who wait for the end of workflows, or for what is due."""
        if self.state in states.ENDED:
            return (topic_of(WORKFLOW),)
        return (TOPIC,) if self.delay is not None and self.delay < SOON else ()

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: claim-lost."""
        delay = None if self.state in states.ENDED else self.lease if self.delay is None else self.delay
        changes = (self.expected, self.state, self.expected, delay, self.kept)
        found = yield Statement(_CHANGE, (*changes, self.workflow_id, self.fence))
        if not found:
            return Conflict("claim-lost")
        yield from _write(self.workflow_id, self.rows)
        for topic in self.topics:
            yield Notify(topic)
        return found[0][0]


class EndRun(Command, frozen=True):
    """End a workflow and tell its callback, in one unit; tell nobody if it does not end: it was paused or cancelled."""

    guards: ClassVar[bool] = True
    noted: JournalSteps
    posting: Command

    @property
    def rows(self) -> tuple[StepRow, ...]:
        return self.noted.rows

    def steps(self) -> Steps:
        state = yield from self.noted.steps()
        if state == self.noted.state:
            yield from self.posting.steps()
        return state


class ParkRun(Command, frozen=True):
    """Let a workflow rest, if the claim still holds. It is due at once if what it waits for is there already."""

    guards: ClassVar[bool] = True
    workflow_id: str
    fence: int
    rows: tuple[StepRow, ...]
    delay: float  # seconds until it is due
    state: str  # sleeping, or waiting
    signals: tuple[str, ...] = ()  # names of the signals that it waits for
    cases: tuple[str, ...] = ()  # cases that it waits for
    expected: str = states.RUNNING

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: claim-lost."""
        # Locked before anything is looked up, by statements of their own: a single UPDATE that waits for the lock of a
        # signal or a decision would look for it in the snapshot from before, and the wake-up would be lost.
        ready = False
        for case_id in sorted(self.cases):
            found = yield Statement("SELECT state FROM cases WHERE case_id = ? {lock}", (case_id,))
            ready = ready or not found or found[0][0] not in ("pending", "deferred")
        found = yield Statement(
            "SELECT state FROM records WHERE record_id = ? AND fence = ? {lock}", (self.workflow_id, self.fence)
        )
        if not found:
            return Conflict("claim-lost")
        if self.signals and not ready:
            rows = yield Statement(
                f"SELECT 1 FROM steps WHERE workflow_id = ? AND number < 0 AND state = 'arrived' "
                f"AND asked IN ({', '.join('?' * len(self.signals))}) LIMIT 1",
                (self.workflow_id, *self.signals),
            )
            ready = bool(rows)
        rests, delay = found[0][0] == self.expected, 0.0 if ready else self.delay
        if rests:
            yield Statement(
                "UPDATE records SET state = ?, version = version + 1, updated = {now}, due = {now} + ? "
                "WHERE record_id = ?",
                (self.state, delay, self.workflow_id),
            )
        yield from _write(self.workflow_id, self.rows)
        if rests and delay < SOON:
            yield Notify(TOPIC)
        return self.state if rests else found[0][0]


class SignalRun(Command, frozen=True):
    """Leave a signal for a workflow, and wake it if it rests."""

    guards: ClassVar[bool] = True
    workflow_id: str
    name: str
    value: str  # JSON
    owner: str | None = None  # owner that it must have; None for whoever may signal those of others

    def steps(self) -> Steps:
        """Return the state of the workflow, or a Conflict: not-found; ended, with its state; too-many."""
        # Changed first, also as the lock that orders it with ParkRun.
        found = yield Statement(
            f"UPDATE records SET due = CASE WHEN state IN ('sleeping', 'waiting') THEN {{now}} ELSE due END "
            f"WHERE record_id = ? AND kind = '{WORKFLOW}' AND expires > {{now}} RETURNING state, owner",
            (self.workflow_id,),
        )
        if not found or self.owner not in (None, found[0][1]):
            return Conflict("not-found")
        if found[0][0] in states.ENDED:
            return Conflict("ended", {"state": found[0][0]})
        rows = yield Statement(
            "SELECT coalesce(min(number), 0), sum(CASE WHEN state = 'arrived' THEN 1 ELSE 0 END) FROM steps "
            "WHERE workflow_id = ? AND number < 0",
            (self.workflow_id,),
        )
        last, kept = rows[0]
        if (kept or 0) >= MOST_SIGNALS:
            return Conflict("too-many", {"most": MOST_SIGNALS})
        yield from _write(self.workflow_id, (StepRow(last - 1, 1, states.ARRIVED, 0, self.value, self.name),))
        yield Notify(TOPIC)
        return found[0][0]


def change_run(workflow_id: str, change: str) -> ChangeRecord:
    """Return the command of a change that an operator makes, by its name."""
    allowed_from, state = states.CHANGES[change]
    return ChangeRecord(workflow_id, (WORKFLOW,), allowed_from, state, delay=None if state == states.PAUSED else 0.0)


class ReadSteps(Command, frozen=True):
    workflow_id: str

    def steps(self) -> Result[list[StepRow]]:
        return (yield from ReadJournals((self.workflow_id,)).steps())[self.workflow_id]


class ReadSignals(Command, frozen=True):
    """Read the signals of a name that nobody has taken, the oldest first."""

    workflow_id: str
    name: str

    def steps(self) -> Result[list[StepRow]]:
        return read_all(
            StepRow,
            f"SELECT {', '.join(_NAMES)} FROM steps WHERE workflow_id = ? AND number < 0 AND state = 'arrived' "
            "AND asked = ? ORDER BY number DESC",
            self.workflow_id,
            self.name,
        )


class ReadJournals(Command, frozen=True):
    workflow_ids: tuple[str, ...]

    def steps(self) -> Result[dict[str, list[StepRow]]]:
        places = ", ".join("?" * len(self.workflow_ids))
        rows = yield Statement(
            f"SELECT workflow_id, {', '.join(_NAMES)} FROM steps "
            f"WHERE workflow_id IN ({places}) ORDER BY workflow_id, number",
            self.workflow_ids,
        )
        found: dict[str, list[StepRow]] = {workflow_id: [] for workflow_id in self.workflow_ids}
        for workflow_id, *row in rows:
            found[workflow_id].append(StepRow(*row))
        return found


class Advance(msgspec.Struct, frozen=True):
    state: str
    due: float | None
    done: int  # steps that have ended
    last: int  # highest number of these
    asked: str | None  # what that one was


class ReadAdvance(Command, frozen=True):
    """Read how far a workflow is, without its outputs."""

    workflow_id: str

    def steps(self) -> Result[Advance]:
        found = yield Statement("SELECT state, due FROM records WHERE record_id = ?", (self.workflow_id,))
        counted = yield Statement(
            "SELECT count(*), coalesce(max(number), 0) FROM steps WHERE workflow_id = ? AND number > 0 "
            "AND number < ? AND state NOT IN ('pending', 'started', 'waiting')",
            (self.workflow_id, BESIDE),
        )
        named = yield Statement(
            "SELECT asked FROM steps WHERE workflow_id = ? AND number = ?", (self.workflow_id, counted[0][1])
        )
        (state, due), (done, last) = found[0], counted[0]
        return Advance(state, due, done, last, named[0][0] if named else None)


class ForgetSteps(Command, frozen=True):
    """Remove steps from the journal of a workflow, so that they are done again."""

    workflow_id: str
    numbers: tuple[int, ...]

    def steps(self) -> Result[None]:
        for number in self.numbers:
            yield Statement("DELETE FROM steps WHERE workflow_id = ? AND number = ?", (self.workflow_id, number))


class ReleaseWorkflows(Command, frozen=True):
    """Make workflows due whose process has died, where no other process can have claimed them."""

    def steps(self) -> Result[int]:
        # Code that has stopped some may be another one now. Those that sleep until a time are left alone.
        return wake(f"kind = '{WORKFLOW}' AND state IN ('running', 'cancelling', 'stopped')")
