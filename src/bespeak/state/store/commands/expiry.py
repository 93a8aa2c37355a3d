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
}


class PurgeExpired(Command, frozen=True):
    """Remove up to `limit` expired rows of each kind."""

    limit: int = 500

    def steps(self) -> Steps:
        """Return the number of removed rows."""
        removed = 0
        # The time is a query of its own, so that PostgreSQL reads the clock once and finds the rows by the index.
        for table, key in _EXPIRING.items():
            rows = yield Statement(
                f"DELETE FROM {table} WHERE ({key}) IN "
                f"(SELECT {key} FROM {table} WHERE expires <= (SELECT {{now}}) LIMIT ? {{skip}}) RETURNING 1",
                (self.limit,),
            )
            removed += len(rows)
        gone = yield Statement(
            "DELETE FROM records WHERE record_id IN "
            "(SELECT record_id FROM records WHERE expires <= (SELECT {now}) LIMIT ? {skip}) RETURNING record_id",
            (self.limit,),
        )
        if gone:  # the journal of a workflow goes with it
            places = ", ".join("?" * len(gone))
            yield Statement(f"DELETE FROM steps WHERE workflow_id IN ({places})", tuple(row[0] for row in gone))
        return removed + len(gone)
