"""Audit records: appended and read, never changed."""

from __future__ import annotations

from typing import ClassVar, Final

from bespeak.state.store.store import Command, Grouping, Members, Notify, Seal, Sealed, Statement, Steps

_INSERT: Final = "INSERT INTO audit (stream, sequence, agent_id, audit_id, jws) VALUES (?, ?, ?, ?, ?)"
HEAD: Final = "SELECT audit_id FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1"
"""Query for the latest record of an agent, written by any process."""
CHECKPOINTS: Final = "checkpoints"  # topic to watch for new checkpoints
_COLUMNS: Final = "position, stream, sequence, agent_id, audit_id, jws"


class AppendAudit(Command, frozen=True):
    """Seal a record and store it. It must be the last command of its unit: a sealed record cannot be undone alone."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"stream": "text", "sequence": "bigint", "agent_id": "text", "audit_id": "text", "jws": "text"},
        change="""
            INSERT INTO audit (stream, sequence, agent_id, audit_id, jws)
            SELECT stream, sequence, agent_id, audit_id, jws FROM {input} ORDER BY n
        """,
        result=lambda sealed, _: sealed,
        seal=lambda command: (command.agent_id, command.payload),
    )
    agent_id: str
    payload: Members

    def steps(self) -> Steps:
        """Return the sealed record."""
        sealed: Sealed = yield Seal(self.agent_id, self.payload)
        yield Statement(_INSERT, (sealed.stream, sealed.sequence, sealed.agent_id, sealed.audit_id, sealed.jws))
        return sealed


class ReadAudit(Command, frozen=True):
    """Read the record of an Audit-ID: `(position, stream, sequence, agent_id, audit_id, jws)`, or None."""

    audit_id: str

    def steps(self) -> Steps:
        """Return a row or None."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM audit WHERE {{audit_id}}", (self.audit_id,))
        return rows[0] if rows else None


class ReadChainHead(Command, frozen=True):
    """Read the latest record of an agent, or None."""

    agent_id: str

    def steps(self) -> Steps:
        """Return a row or None."""
        sql = f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1"
        rows = yield Statement(sql, (self.agent_id,))
        return rows[0] if rows else None


class ScanAudit(Command, frozen=True):
    """Read records after a position in the order they were written, optionally of one agent."""

    after: int = 0
    limit: int = 1000
    agent_id: str | None = None

    def steps(self) -> Steps:
        """Return rows."""
        if self.agent_id is None:
            sql = f"SELECT {_COLUMNS} FROM audit WHERE position > ? ORDER BY position LIMIT ?"
            return (yield Statement(sql, (self.after, self.limit)))
        sql = f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? AND position > ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (self.agent_id, self.after, self.limit)))


class ScanOtherStreams(Command, frozen=True):
    """Read records after a position that are not of one stream, in the order they were written."""

    after: int
    stream: str
    limit: int = 1000

    def steps(self) -> Steps:
        """Return rows."""
        sql = f"SELECT {_COLUMNS} FROM audit WHERE position > ? AND stream <> ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (self.after, self.stream, self.limit)))


class LatestAudit(Command, frozen=True):
    """Read the latest records of one agent or of all, newest first."""

    limit: int
    agent_id: str | None = None

    def steps(self) -> Steps:
        """Return rows."""
        if self.agent_id is None:
            sql = f"SELECT {_COLUMNS} FROM audit ORDER BY position DESC LIMIT ?"
            return (yield Statement(sql, (self.limit,)))
        sql = f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT ?"
        return (yield Statement(sql, (self.agent_id, self.limit)))


class AuditExtent(Command, frozen=True):
    """Read the position of the latest record, 0 if there are no records."""

    def steps(self) -> Steps:
        """Return a number."""
        rows = yield Statement("SELECT COALESCE(MAX(position), 0) FROM audit")
        return rows[0][0]


class CountAuditAgents(Command, frozen=True):
    """Count the agents that have records; all anonymous callers count as one."""

    def steps(self) -> Steps:
        """Return a number."""
        rows = yield Statement("SELECT COUNT(DISTINCT agent_id) FROM audit")
        return rows[0][0]


class LastCheckpoint(Command, frozen=True):
    """Read and lock the checkpoint that the next one follows: `(checkpoint_id, jws)` or None."""

    def steps(self) -> Steps:
        """Return a row or None."""
        sql = "SELECT checkpoint_id, jws FROM checkpoints ORDER BY position DESC LIMIT 1"
        rows = yield Statement(sql + " {lock}")
        while rows:
            # Whoever held the lock may have written another one, which a query that waited for it does not see.
            again = yield Statement(sql)
            if again[0][0] == rows[0][0]:
                return rows[0]
            rows = yield Statement(sql + " {lock}")
        return None


class AppendCheckpoint(Command, frozen=True):
    """Store a signed checkpoint."""

    checkpoint_id: str
    jws: str

    def steps(self) -> Steps:
        """Insert the checkpoint."""
        yield Statement("INSERT INTO checkpoints (checkpoint_id, jws) VALUES (?, ?)", (self.checkpoint_id, self.jws))
        yield Notify(CHECKPOINTS)


class ReadCheckpoint(Command, frozen=True):
    """Read the checkpoint of an id: `(position, checkpoint_id, jws)`, or None."""

    checkpoint_id: str

    def steps(self) -> Steps:
        """Return a row or None."""
        sql = "SELECT position, checkpoint_id, jws FROM checkpoints WHERE checkpoint_id = ?"
        rows = yield Statement(sql, (self.checkpoint_id,))
        return rows[0] if rows else None


class ScanCheckpoints(Command, frozen=True):
    """Read checkpoints after a position: `(position, checkpoint_id, jws)`."""

    after: int = 0
    limit: int = 1000

    def steps(self) -> Steps:
        """Return rows."""
        sql = "SELECT position, checkpoint_id, jws FROM checkpoints WHERE position > ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (self.after, self.limit)))
