"""Records of what happened: appended, read, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.store.command import Command, Seal, Sealed, Statement, Steps

_INSERT: Final = "INSERT INTO audit (stream, sequence, agent_id, audit_id, jws) VALUES (?, ?, ?, ?, ?)"
HEAD: Final = "SELECT audit_id FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1"
"""The latest record of an agent, whichever process wrote it."""
_COLUMNS: Final = "position, stream, sequence, agent_id, audit_id, jws"


class AppendAudit(Command, frozen=True):
    """Seal a record and keep it. The last command of its unit, for what is sealed cannot be taken back alone."""

    agent_id: str
    payload: Mapping[str, Any]

    def steps(self) -> Steps:
        """The sealed record."""
        sealed: Sealed = yield Seal(self.agent_id, self.payload)
        yield Statement(_INSERT, (sealed.stream, sealed.sequence, sealed.agent_id, sealed.audit_id, sealed.jws))
        return sealed


class ReadAudit(Command, frozen=True):
    """The record of an Audit-ID: `(position, stream, sequence, agent_id, audit_id, jws)`, or None."""

    audit_id: str

    def steps(self) -> Steps:
        """A row or None."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM audit WHERE audit_id = ?", (self.audit_id,))  # noqa: S608
        return rows[0] if rows else None


class ReadChainHead(Command, frozen=True):
    """The latest record of an agent, or None."""

    agent_id: str

    def steps(self) -> Steps:
        """A row or None."""
        sql = f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? ORDER BY position DESC LIMIT 1"  # noqa: S608
        rows = yield Statement(sql, (self.agent_id,))
        return rows[0] if rows else None


class ScanAudit(Command, frozen=True):
    """Records behind a position, in the order they were written; of one agent, if one is named."""

    after: int = 0
    limit: int = 1000
    agent_id: str | None = None

    def steps(self) -> Steps:
        """Rows."""
        if self.agent_id is None:
            sql = f"SELECT {_COLUMNS} FROM audit WHERE position > ? ORDER BY position LIMIT ?"  # noqa: S608
            return (yield Statement(sql, (self.after, self.limit)))
        sql = f"SELECT {_COLUMNS} FROM audit WHERE agent_id = ? AND position > ? ORDER BY position LIMIT ?"  # noqa: S608
        return (yield Statement(sql, (self.agent_id, self.after, self.limit)))


class AppendCheckpoint(Command, frozen=True):
    """Keep a signed checkpoint."""

    checkpoint_id: str
    jws: str

    def steps(self) -> Steps:
        """Nothing."""
        yield Statement("INSERT INTO checkpoints (checkpoint_id, jws) VALUES (?, ?)", (self.checkpoint_id, self.jws))


class ScanCheckpoints(Command, frozen=True):
    """Checkpoints behind a position: `(position, checkpoint_id, jws)`."""

    after: int = 0
    limit: int = 1000

    def steps(self) -> Steps:
        """Rows."""
        sql = "SELECT position, checkpoint_id, jws FROM checkpoints WHERE position > ? ORDER BY position LIMIT ?"
        return (yield Statement(sql, (self.after, self.limit)))
