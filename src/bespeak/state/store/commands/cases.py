"""Cases: escalations and confirmations that another party has to decide, and the tasks they pause (core 4.9)."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.protocol.exchange.header_values import stored_task_id
from bespeak.state.store.commands.records import NEVER, WakeWaiting
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all, read_one

TASK_TOPIC: Final = "tasks"  # topic to watch for paused and released tasks
STOPPED: Final = 30 * 86400.0  # seconds for which a task whose escalation was rejected stays stopped
_SELECT: Final = (
    "SELECT p.agent_id, p.task_id, c.case_id, c.recipient, c.state, c.reason "
    "FROM paused_tasks AS p JOIN cases AS c ON c.case_id = p.case_id WHERE p.expires > {now}"
)


class PausedTask(msgspec.Struct, frozen=True):
    agent_id: str
    task_id: str
    case_id: str  # the escalation
    recipient: str
    state: str  # state of the escalation: pending, deferred or rejected
    reason: str | None  # reason of its decision


class PauseTask(Command, frozen=True):
    """Pause a task until the case is decided, for everyone who works on it."""

    case_id: str
    task_id: str
    agents: tuple[str, ...]

    def steps(self) -> Result[None]:
        for agent_id in dict.fromkeys(self.agents):
            yield Statement(
                "INSERT INTO paused_tasks (agent_id, task_id, case_id, expires) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (agent_id, task_id, case_id) DO NOTHING",
                (agent_id, stored_task_id(self.task_id), self.case_id, NEVER),
            )
        yield Notify(TASK_TOPIC)


class ListPausedTasks(Command, frozen=True):
    limit: int

    def steps(self) -> Result[list[PausedTask]]:
        return read_all(PausedTask, f"{_SELECT} LIMIT ?", self.limit)


class FindPausedTask(Command, frozen=True):
    task_id: str
    agents: tuple[str, ...]

    def steps(self) -> Result[PausedTask | None]:
        marks = ", ".join("?" for _ in self.agents)
        sql = f"{_SELECT} AND p.task_id = ? AND p.agent_id IN ({marks}) LIMIT 1"
        return read_one(PausedTask, sql, stored_task_id(self.task_id), *self.agents)


TOPIC: Final = "cases"  # topic to watch for opened and decided cases

ESCALATION: Final = "escalation"
CONFIRMATION: Final = "confirmation"
KINDS: Final = (ESCALATION, CONFIRMATION)

PENDING: Final = "pending"
DEFERRED: Final = "deferred"
ACCEPTED: Final = "accepted"
REJECTED: Final = "rejected"
EXECUTED: Final = "executed"
EXPIRED: Final = "expired"
STATES: Final = (PENDING, DEFERRED, ACCEPTED, REJECTED, EXECUTED, EXPIRED)

_OPEN: Final = "state IN ('pending', 'deferred')"
# Nobody is there to note that a time has passed, so the state is that of the moment it is looked at.
_STATE: Final = (
    "CASE WHEN state IN ('pending', 'deferred', 'accepted') AND expires <= {now} THEN 'expired' ELSE state END"
)


class Case(msgspec.Struct, frozen=True):
    case_id: str
    kind: str
    agent_id: str  # Agent that asked
    recipient: str
    digest: str  # SHA-256 of the subject, in hexadecimal digits
    subject: str  # request to decide, as the JSON that was received
    created: float
    deadline: float | None
    expires: float | None
    decided_by: str | None
    decided_at: float | None
    reason: str | None
    attestation_id: str | None
    attestation: str | None
    parties: str | None  # JSON list of everyone behind the request; None in a case from before this was recorded
    decided_parties: str | None  # JSON list of everyone behind the decision
    state: str


_COLUMNS: Final = ", ".join(Case.__struct_fields__[:-1]) + f", {_STATE}"
_SAME: Final = f"SELECT {_COLUMNS} FROM cases WHERE kind = ? AND agent_id = ? AND digest = ?"
_NEWEST: Final = " ORDER BY created DESC LIMIT 1"
_ANSWERABLE: Final = (
    f" AND ({_OPEN} OR (state = 'accepted' AND kind = 'confirmation')) AND (expires IS NULL OR expires > {{now}})"
)


def _write(parties: tuple[str, ...]) -> str:
    return msgspec.json.encode(parties).decode()


def _read(parties: str | None) -> list[str]:
    return [] if parties is None else msgspec.json.decode(parties, type=list[str])


class Opened(msgspec.Struct, frozen=True):
    case: Case
    new: bool


class OpenCase(Command, frozen=True):
    """Ask for a decision. Equal requests of an agent are one case while it is open, or accepted and not yet used."""

    guards: ClassVar[bool] = True
    case_id: str
    kind: str
    agent_id: str
    recipient: str
    digest: str
    subject: str
    deadline: float | None = None  # deadline in seconds since 1970
    lifetime: float | None = None  # seconds until the case can no longer be decided or used
    announcement: Command | None = None  # what tells the recipient, if the case is new
    pause: PauseTask | None = None  # Task that waits for the decision
    parties: tuple[str, ...] = ()  # everyone behind the request: none of them may decide it
    most_open: int = 10_000  # limit of undecided cases of an agent: a person has to look at each of them

    def steps(self) -> Steps:
        """Return Opened, or a Conflict: too-many."""
        key = (self.kind, self.agent_id, self.digest)
        rows = yield Statement(_SAME + _ANSWERABLE + _NEWEST, key)
        if rows:
            return Opened(Case(*rows[0]), new=False)
        yield Statement(
            "UPDATE cases SET state = 'expired' "
            f"WHERE kind = ? AND agent_id = ? AND digest = ? AND {_OPEN} AND expires <= {{now}}",
            key,
        )
        rows = yield Statement(f"SELECT count(*) FROM cases WHERE kind = ? AND agent_id = ? AND {_OPEN}", key[:2])
        if rows[0][0] >= self.most_open:
            return Conflict("too-many", {"most": self.most_open})
        rows = yield Statement(
            "INSERT INTO cases "
            "(case_id, kind, state, agent_id, recipient, digest, subject, parties, created, deadline, expires)"
            " VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, {now}, ?, {now} + ?) "
            f"ON CONFLICT (kind, agent_id, digest) WHERE {_OPEN} DO NOTHING RETURNING {_COLUMNS}",
            (
                *(self.case_id, self.kind, self.agent_id, self.recipient, self.digest, self.subject),
                *(_write(self.parties), self.deadline, self.lifetime),
            ),
        )
        if not rows:  # somebody asked the same at the same moment
            rows = yield Statement(_SAME + _NEWEST, key)
            return Opened(Case(*rows[0]), new=False)
        if self.announcement is not None:
            yield from self.announcement.steps()
        if self.pause is not None:
            yield from self.pause.steps()
        yield Notify(TOPIC)
        return Opened(Case(*rows[0]), new=True)


class DecideCase(Command, frozen=True):
    """Decide a case. Accepting and rejecting are final; a deferred case can still be decided."""

    guards: ClassVar[bool] = True
    case_id: str
    status: str  # decision: accepted, rejected or deferred
    decided_by: str
    attestation_id: str
    kinds: tuple[str, ...] = ()  # kinds of cases that the decider may decide although another party was asked
    parties: tuple[str, ...] = ()  # everyone behind the decision: whoever is also behind the request makes it void
    reason: str | None = None
    attestation: str | None = None  # JSON attestation

    def steps(self) -> Steps:
        """Return the updated Case, or a Conflict: not-found, own-case, not-permitted, already-decided, expired."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM cases WHERE case_id = ? {{lock}}", (self.case_id,))
        if not rows:
            return Conflict("not-found")
        case = Case(*rows[0])
        if not {case.agent_id, *_read(case.parties)}.isdisjoint((self.decided_by, *self.parties)):
            return Conflict("own-case")
        if case.recipient != self.decided_by and case.kind not in self.kinds:
            return Conflict("not-permitted", {"kind": case.kind})
        state = ACCEPTED if case.state == EXECUTED else case.state
        if case.state == EXPIRED:
            return Conflict("expired")
        if state == self.status and case.decided_by == self.decided_by:
            return case
        if state in (ACCEPTED, REJECTED):
            first = {"decided_by": case.decided_by, "decided_at": case.decided_at}
            return Conflict("already-decided", {"status": state, "attestation_id": case.attestation_id, **first})
        rows = yield Statement(
            "UPDATE cases SET state = ?, decided_by = ?, decided_at = {now}, reason = ?, "
            "attestation_id = ?, attestation = ?, decided_parties = ? "
            f"WHERE case_id = ? RETURNING {_COLUMNS}",
            (
                *(self.status, self.decided_by, self.reason),
                *(self.attestation_id, self.attestation, _write(self.parties), self.case_id),
            ),
        )
        if case.kind == ESCALATION and self.status != DEFERRED:
            if self.status == ACCEPTED:
                yield Statement("DELETE FROM paused_tasks WHERE case_id = ?", (self.case_id,))
            else:
                sql = "UPDATE paused_tasks SET expires = {now} + ? WHERE case_id = ?"
                yield Statement(sql, (STOPPED, self.case_id))
            yield Notify(TASK_TOPIC)
        yield from WakeWaiting(self.case_id).steps()
        yield Notify(TOPIC)
        return Case(*rows[0])


class UseCase(Command, frozen=True):
    """Use a confirmation for the call it was given for. It can be used once."""

    guards: ClassVar[bool] = True
    case_id: str
    digest: str
    agent_id: str
    parties: tuple[str, ...] = ()  # everyone behind the call; they may be more than when it was requested

    def steps(self) -> Steps:
        """Return the Case or a Conflict: not-found, of-another, digest-differs, own-case, used or another state."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM cases WHERE case_id = ? {{lock}}", (self.case_id,))
        if not rows or rows[0][1] != CONFIRMATION:
            return Conflict("not-found")
        case = Case(*rows[0])
        if case.agent_id != self.agent_id:
            return Conflict("of-another")
        if case.digest != self.digest:
            return Conflict("digest-differs", {"digest": case.digest})
        if case.state != ACCEPTED:
            reason = {EXECUTED: "used", DEFERRED: PENDING}.get(case.state, case.state)
            return Conflict(reason, {"status": case.state, "expires": case.expires, "reason": case.reason})
        if not {self.agent_id, *self.parties}.isdisjoint((case.decided_by, *_read(case.decided_parties))):
            return Conflict("own-case")
        rows = yield Statement(
            f"UPDATE cases SET state = 'executed' WHERE case_id = ? RETURNING {_COLUMNS}", (self.case_id,)
        )
        yield Notify(TOPIC)
        return Case(*rows[0])


class ReadCase(Command, frozen=True):
    case_id: str

    def steps(self) -> Result[Case | None]:
        return read_one(Case, f"SELECT {_COLUMNS} FROM cases WHERE case_id = ?", self.case_id)


class ListCases(Command, frozen=True):
    """List cases, oldest first."""

    state: str | None = None  # state to list; None for all
    limit: int = 100
    after: tuple[float, str] = (0.0, "")  # time and id of the last case of the previous page

    def steps(self) -> Steps:
        conditions = [] if self.state is None else [f"{_STATE} = ?"]
        if self.state not in (None, EXPIRED):  # so that the index is of use
            conditions.append("state = ?")
        where = " AND ".join([*conditions, "(created, case_id) > (?, ?)"])
        rows = yield Statement(
            f"SELECT {_COLUMNS} FROM cases WHERE {where} ORDER BY created, case_id LIMIT ?",
            (*(self.state for _ in conditions), *self.after, self.limit),
        )
        return [Case(*row) for row in rows]
