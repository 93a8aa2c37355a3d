"""A task that removes expired rows while a server runs, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.store import Command, Conflict, Result, Statement, Store

_logger = logging.getLogger(__name__)

EVERY_SECONDS: Final = 60.0
_ROWS: Final = 200  # rows of each kind in one transaction: a few milliseconds, too short for requests to notice
_ROUNDS: Final = 2000  # limit of transactions in one turn; the rest waits for the next turn
_SHARE: Final = 4  # ratio of waiting to removing: the sweeper must keep up with requests, not compete with them

# Tables whose rows expire, with their keys.
_EXPIRING: Final = {
    "idempotency": "scope, key",
    "nonces": "kind, value",
    "sessions": "session_id",
    "buckets": "name",
    "paused_tasks": "agent_id, task_id, case_id",
    "a2a_tasks": "task_id",
    "records": "record_id",
    "job_parts": "job_id, number",
}
# Tables whose rows operators can still see after their end. Escalations among the cases have none.
_KEPT: Final = {"cases": "case_id", "delegations": "delegation_id", "proposals": "proposal_id", "api_keys": "key_id"}


class PurgeExpired(Command, frozen=True):
    """Remove up to `limit` expired rows of each table."""

    limit: int = 500
    kept: float = 30 * 86400.0  # seconds for which rows that operators can still see are kept after their end

    def steps(self) -> Result[int]:
        removed = 0
        # The time is a query of its own, so that PostgreSQL reads the clock once and finds the rows by the index.
        for table, key in (_EXPIRING | _KEPT).items():
            returned = "record_id" if table == "records" else "1"
            rows = yield Statement(
                f"DELETE FROM {table} WHERE ({key}) IN "
                f"(SELECT {key} FROM {table} WHERE expires <= (SELECT {{now}} - ?) LIMIT ? {{skip}}) "
                f"RETURNING {returned}",
                (self.kept if table in _KEPT else 0.0, self.limit),
            )
            removed += len(rows)
            if table == "records" and rows:  # the journal of a workflow goes with it
                places = ", ".join("?" * len(rows))
                yield Statement(f"DELETE FROM steps WHERE workflow_id IN ({places})", tuple(row[0] for row in rows))
        return removed


class Sweeper:
    """A task that purges the store once a minute. It is stopped before its store is closed."""

    def __init__(self, store: Store, every: float = EVERY_SECONDS) -> None:
        self._store = store
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-sweeper")

    async def stop(self) -> None:
        """Stop after the current transaction."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def sweep(self) -> int:
        """Run one turn and return the number of removed rows."""
        removed, clock = 0, asyncio.get_running_loop().time
        for _ in range(_ROUNDS):
            begun = clock()
            outcome = await self._store.do(PurgeExpired(_ROWS))
            if isinstance(outcome, Conflict) or not any(outcome):
                break
            removed += sum(outcome)
            await asyncio.sleep(_SHARE * (clock() - begun))
        return removed

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.sweep()
            except StoreError as error:
                # Whoever needs the store is told; what has expired can wait.
                _logger.info("could not remove expired rows from the store: %s", error)
