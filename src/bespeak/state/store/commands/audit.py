"""Audit records: appended and read, never changed."""

from __future__ import annotations

from typing import ClassVar, Final

from bespeak.state.store import store
from bespeak.state.store.store import Command, Grouping, Notify, Result, Row, Sealed, Statement, Steps, read_number

_INSERT: Final = "INSERT INTO audit (stream, sequence, agent_id, audit_id, jws)"
HEAD: Final = "SELECT audit_id FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1"
"""Query for the latest record of an agent, written by any process."""
CHECKPOINTS: Final = "checkpoints"  # topic to watch for new checkpoints
_COLUMNS: Final = "position, stream, sequence, agent_id, audit_id, jws"


def _first(sql: str, parameter: str) -> Result[Row | None]:
    rows = yield Statement(sql, (parameter,))
    return rows[0] if rows else None


class AppendAudit(Command, frozen=True):
    """Seal a record and store it. It must be the last command of its unit: a sealed record cannot be undone alone."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"stream": "text", "sequence": "bigint", "agent_id": "text", "audit_id": "text", "jws": "text"},
        change=f"{_INSERT} SELECT stream, sequence, agent_id, audit_id, jws FROM {{input}} ORDER BY n",
        result=lambda sealed, _: sealed,
        seal=lambda command: (command.agent_id, command.payload),
    )
    agent_id: str
    payload: store.Members

    def steps(self) -> Result[Sealed]:
        sealed: Sealed = yield store.Seal(self.agent_id, self.payload)
        values = (sealed.stream, sealed.sequence, sealed.agent_id, sealed.audit_id, sealed.jws)
        yield Statement(f"{_INSERT} VALUES (?, ?, ?, ?, ?)", values)
        return sealed


class ReadAudit(Command, frozen=True):
    """Read the record of an Audit-ID: `(position, stream, sequence, agent_id, audit_id, jws)`, or None."""

    audit_id: str

    def steps(self) -> Result[Row | None]:
        return _first(f"SELECT {_COLUMNS} FROM audit WHERE {{audit_id}}", self.audit_id)


class ReadChainHead(Command, frozen=True):
    """Read the latest record of an agent, or None."""

    agent_id: str

    def steps(self) -> Result[Row | None]:
        return _first(f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1", self.agent_id)


class ScanAudit(Command, frozen=True):
    """Read records after a position in the order they were written, optionally of one agent, or of other streams."""

    after: int = 0
    limit: int = 1000
    agent_id: str | None = None
    other_than: str | None = None  # stream to leave out

    def steps(self) -> Steps:
        wanted = {"agent_id = ? AND ": self.agent_id, "stream <> ? AND ": self.other_than}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        sql = f"SELECT {_COLUMNS} FROM audit WHERE {''.join(given)}position > ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (*given.values(), self.after, self.limit)))


class LatestAudit(Command, frozen=True):
    """Read the latest records of one agent or of all, newest first."""

    limit: int
    agent_id: str | None = None
    before: int | None = None  # position of the last record of the previous page; None to begin

    def steps(self) -> Steps:
        wanted = {"agent_id = ?": self.agent_id, "position < ?": self.before}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)} " if given else ""
        sql = f"SELECT {_COLUMNS} FROM audit {where}ORDER BY position DESC LIMIT ?"
        return (yield Statement(sql, (*given.values(), self.limit)))


class AuditExtent(Command, frozen=True):
    """Read the position of the latest record, 0 if there are no records."""

    def steps(self) -> Result[int]:
        return read_number("SELECT COALESCE(MAX(position), 0) FROM audit")


class CountAuditAgents(Command, frozen=True):
    """Count the agents that have records; all anonymous callers count as one."""

    def steps(self) -> Result[int]:
        return read_number("SELECT COUNT(DISTINCT agent_id) FROM audit")


class LastCheckpoint(Command, frozen=True):
    """Read and lock the checkpoint that the next one follows: `(checkpoint_id, jws)` or None."""

    def steps(self) -> Result[Row | None]:
        sql = "SELECT checkpoint_id, jws FROM checkpoints ORDER BY position DESC LIMIT 1"
        rows = yield Statement(sql + " {lock}")
        while rows:
            # Whoever held the lock may have written another one, which a query that waited for it does not see.
            again = yield Statement(sql)
            if again[0][0] == rows[0][0]:
                break
            rows = yield Statement(sql + " {lock}")
        return rows[0] if rows else None


class AppendCheckpoint(Command, frozen=True):
    checkpoint_id: str
    jws: str

    def steps(self) -> Result[None]:
        yield Statement("INSERT INTO checkpoints (checkpoint_id, jws) VALUES (?, ?)", (self.checkpoint_id, self.jws))
        yield Notify(CHECKPOINTS)


class ReadCheckpoint(Command, frozen=True):
    """Read the checkpoint of an id: `(position, checkpoint_id, jws)`, or None."""

    checkpoint_id: str

    def steps(self) -> Result[Row | None]:
        sql = "SELECT position, checkpoint_id, jws FROM checkpoints WHERE checkpoint_id = ?"
        return _first(sql, self.checkpoint_id)


class ScanCheckpoints(Command, frozen=True):
    """Read checkpoints after a position: `(position, checkpoint_id, jws)`."""

    after: int = 0
    limit: int = 1000

    def steps(self) -> Steps:
        sql = "SELECT position, checkpoint_id, jws FROM checkpoints WHERE position > ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (self.after, self.limit)))
