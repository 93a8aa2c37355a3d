"""Removal of expired rows, a few at a time."""

from __future__ import annotations

from typing import Final

from bespeak.state.store.command import Command, Statement, Steps

_EXPIRING: Final = {
    "idempotency": "scope, key",
    "nonces": "kind, value",
    "sessions": "session_id",
    "buckets": "name",
    "paused_tasks": "agent_id, task_id, case_id",
    "a2a_tasks": "task_id",
    "records": "record_id",
    "steps": "workflow_id, number",
}


class PurgeExpired(Command, frozen=True):
    """Remove up to `limit` expired rows of each kind."""

    limit: int = 500

    def steps(self) -> Steps:
        """Return the number of removed rows."""
        removed = 0
        for table, key in _EXPIRING.items():
            rows = yield Statement(
                f"DELETE FROM {table} WHERE ({key}) IN "
                f"(SELECT {key} FROM {table} WHERE expires <= {{now}} LIMIT ? {{skip}}) RETURNING 1",
                (self.limit,),
            )
            removed += len(rows)
        return removed
