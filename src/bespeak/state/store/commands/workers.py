"""Workers: the processes that share a store, as records that each of them renews while it lives."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.state.store.command import Command, Statement, Steps

WORKER: Final = "worker"
"""Kind of the records of processes."""


class Workers(msgspec.Struct, frozen=True):
    """The processes that are known."""

    alive: int
    silent: int
    """Those that have not renewed their record in time: they hang, or died without saying so."""


class RenewWorker(Command, frozen=True):
    """Say that a process lives."""

    worker_id: str
    owner: str
    kept: float
    """Seconds for which it is remembered if nothing more is heard of it."""

    def steps(self) -> Steps:
        """Return nothing."""
        yield Statement(
            "INSERT INTO records (record_id, kind, owner, key, state, version, data, created, updated, due, fence, "
            f"expires) VALUES (?, '{WORKER}', ?, NULL, 'running', 1, '{{}}', {{now}}, {{now}}, NULL, 0, {{now}} + ?) "
            "ON CONFLICT (record_id) DO UPDATE SET updated = excluded.updated, expires = excluded.expires",
            (self.worker_id, self.owner, self.kept),
        )


class CountWorkers(Command, frozen=True):
    """Count the processes."""

    owner: str
    within: float
    """Seconds within which a process that lives has renewed its record."""

    def steps(self) -> Steps:
        """Return Workers."""
        rows = yield Statement(
            "SELECT count(*), count(CASE WHEN updated < {now} - ? THEN 1 END) FROM records "
            f"WHERE kind = '{WORKER}' AND owner = ? AND expires > {{now}}",
            (self.within, self.owner),
        )
        known, silent = rows[0]
        return Workers(known - silent, silent)
