"""Tasks of A2A: which call each is for, who owns it, and the process that works on it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store.commands.idempotency import RecordKey
from bespeak.state.store.store import Command, Conflict, Notify, Result, Row, Statement, Steps

TOPIC: Final = "a2a"  # topic to watch for changed tasks
CANCELS: Final = "a2a-cancels"  # topic to watch for requested cancellations

WORKING: Final = "working"
WAITING: Final = "waiting"  # state of a task that continues with the next message of its caller
FINISHED: Final = "finished"


class A2aTask(msgspec.Struct, frozen=True):
    task_id: str
    context_id: str
    state: str  # one of working, waiting and finished
    status: int  # state of the task in A2A
    call: str | None  # JSON of the call it is for; None if that is too long to be kept
    document: bytes  # the task itself, encoded
    revision: int
    updated: float
    lapsed: bool = False  # True if the process that worked on it is gone


_COLUMNS: Final = ", ".join(A2aTask.__struct_fields__[:-1]) + f", state = '{WORKING}' AND lease <= {{now}}"


def _task(row: Row) -> A2aTask:
    # SQLite has no booleans.
    return msgspec.structs.replace(A2aTask(*row), lapsed=bool(row[-1]))


class OpenTask(Command, frozen=True):
    """Store a new task and its message, unless that is known. An owner with `most` tasks loses a finished one."""

    guards: ClassVar[bool] = True
    message: RecordKey  # key of the message, whose answer is the id of its task
    task: A2aTask
    owner: str
    lease: float  # seconds for which the calling process works on it, unless it prolongs that
    retention: float  # seconds for which a task is kept after its last change
    most: int

    def steps(self) -> Steps:
        """Return the revision, or a Conflict: known, too-many."""
        if isinstance((yield from self.message.steps()), Conflict):
            return Conflict("known")
        rows = yield Statement("SELECT count(*) FROM a2a_tasks WHERE owner = ?", (self.owner,))
        if rows[0][0] >= self.most:
            rows = yield Statement(
                "DELETE FROM a2a_tasks WHERE task_id IN (SELECT task_id FROM a2a_tasks "
                f"WHERE owner = ? AND state = '{FINISHED}' ORDER BY updated LIMIT 1) RETURNING 1",
                (self.owner,),
            )
            if not rows:
                return Conflict("too-many", {"most": self.most})
        task = self.task
        yield Statement(
            "INSERT INTO a2a_tasks (task_id, owner, context_id, state, status, call, document, revision, updated, "
            "lease, canceled, expires) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, {now} + ?, 0, {now} + ?)",
            (
                *(task.task_id, self.owner, task.context_id, task.state, task.status, task.call, task.document),
                *(task.updated, self.lease, self.retention),
            ),
        )
        return 1


class SaveTask(Command, frozen=True):
    """Store a changed task, if nobody else has changed it since."""

    guards: ClassVar[bool] = True
    task: A2aTask  # the task with the revision on which the change is based
    lease: float
    retention: float

    def steps(self) -> Steps:
        """Return the new revision, or a Conflict: changed."""
        task = self.task
        rows = yield Statement(
            "UPDATE a2a_tasks SET state = ?, status = ?, call = ?, document = ?, revision = revision + 1, updated = ?, "
            "lease = {now} + ?, canceled = 0, expires = {now} + ? WHERE task_id = ? AND revision = ? "
            "RETURNING revision",
            (
                *(task.state, task.status, task.call, task.document, task.updated),
                *(self.lease, self.retention, task.task_id, task.revision),
            ),
        )
        if not rows:
            return Conflict("changed")
        yield Notify(TOPIC)
        return rows[0][0]


class ReadTask(Command, frozen=True):
    task_id: str
    owner: str

    def steps(self) -> Steps:
        rows = yield Statement(
            f"SELECT {_COLUMNS} FROM a2a_tasks WHERE task_id = ? AND owner = ? AND expires > {{now}}",
            (self.task_id, self.owner),
        )
        return _task(rows[0]) if rows else None


class ListTasks(Command, frozen=True):
    """List tasks of an owner, the last changed first."""

    owner: str
    limit: int
    context_id: str | None = None
    status: int | None = None
    since: float | None = None
    after: tuple[float, str] | None = None  # time of the last change and id of the task after which the list continues

    def steps(self) -> Steps:
        """Return the number of all matching tasks, and some of them."""
        conditions = ["owner = ?", "expires > {now}"]
        values: list[Any] = [self.owner]
        wanted = {"context_id = ?": self.context_id, "status = ?": self.status, "updated >= ?": self.since}
        for condition, value in wanted.items():
            if value is not None:
                conditions.append(condition)
                values.append(value)
        counted = yield Statement(f"SELECT count(*) FROM a2a_tasks WHERE {' AND '.join(conditions)}", tuple(values))
        if self.after is not None:
            conditions.append("(updated, task_id) < (?, ?)")
            values.extend(self.after)
        rows = yield Statement(
            f"SELECT {_COLUMNS} FROM a2a_tasks WHERE {' AND '.join(conditions)} "
            "ORDER BY updated DESC, task_id DESC LIMIT ?",
            (*values, self.limit),
        )
        return counted[0][0], [_task(row) for row in rows]


class RequestCancel(Command, frozen=True):
    task_id: str

    def steps(self) -> Result[None]:
        yield Statement(f"UPDATE a2a_tasks SET canceled = 1 WHERE task_id = ? AND state = '{WORKING}'", (self.task_id,))
        yield Notify(CANCELS)


class RenewTasks(Command, frozen=True):
    task_ids: tuple[str, ...]
    lease: float
    retention: float

    def steps(self) -> Steps:
        """Return the ids of those that are to be canceled."""
        found: list[str] = []
        for task_id in self.task_ids:
            rows = yield Statement(
                "UPDATE a2a_tasks SET lease = {now} + ?, expires = {now} + ? "
                f"WHERE task_id = ? AND state = '{WORKING}' RETURNING canceled",
                (self.lease, self.retention, task_id),
            )
            if rows and rows[0][0]:
                found.append(task_id)
        return found


class AbandonTasks(Command, frozen=True):
    """End all work: the process that did it is gone, and no other one shares the store."""

    def steps(self) -> Result[None]:
        yield Statement(f"UPDATE a2a_tasks SET lease = 0 WHERE state = '{WORKING}'")
