"""Processes that share a store: which of them live, the token buckets they share, and how much waits for them."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.state.store.commands.records import COLUMNS
from bespeak.state.store.store import Command, Result, Rows, Statement, Steps

WORKER: Final = "worker"  # kind of the records of processes


class WorkerCount(msgspec.Struct, frozen=True):
    alive: int
    silent: int  # those that have not renewed their record in time: they hang, or died without saying so


class RenewWorker(Command, frozen=True):
    worker_id: str
    owner: str
    kept: float  # seconds for which it is remembered if nothing more is heard of it

    def steps(self) -> Result[None]:
        yield Statement(
            f"INSERT INTO records ({COLUMNS}) "
            f"VALUES (?, '{WORKER}', ?, NULL, 'running', 1, '{{}}', {{now}}, {{now}}, NULL, 0, {{now}} + ?) "
            "ON CONFLICT (record_id) DO UPDATE SET updated = excluded.updated, expires = excluded.expires",
            (self.worker_id, self.owner, self.kept),
        )


class CountWorkers(Command, frozen=True):
    owner: str
    within: float  # seconds within which a process that lives has renewed its record

    def steps(self) -> Result[WorkerCount]:
        rows = yield Statement(
            "SELECT count(*), count(CASE WHEN updated < {now} - ? THEN 1 END) FROM records "
            f"WHERE kind = '{WORKER}' AND owner = ? AND expires > {{now}}",
            (self.within, self.owner),
        )
        known, silent = rows[0]
        return WorkerCount(known - silent, silent)


class BucketUse(msgspec.Struct, frozen=True):
    """Tokens that a process has taken from one bucket since its last report."""

    name: str
    cost: float  # seconds in which the bucket refills what was taken
    elapsed: float = 0.0  # seconds since the first token was taken; the refill of that time is not owed


class TakeTokens(Command, frozen=True):
    """Take used tokens from buckets, each named once. Nothing is refused: an overdraft is owed."""

    uses: tuple[BucketUse, ...]

    def steps(self) -> Steps:
        """Return a dict from name to the seconds until the bucket is full; 0 or less if it is full."""
        found: dict[str, float] = {}
        row = "(CAST(? AS TEXT), CAST(? AS DOUBLE PRECISION), CAST(? AS DOUBLE PRECISION))"
        # In one order everywhere, so that two processes never wait for each other's rows.
        uses = sorted(self.uses, key=lambda use: use.name)
        while uses:
            size = next(chunk for chunk in (64, 8, 1) if chunk <= len(uses))  # so that few statements are prepared
            rows = yield Statement(
                f"WITH used (name, cost, elapsed) AS (VALUES {', '.join([row] * size)}) "
                "INSERT INTO buckets (name, expires) SELECT name, {now} - elapsed + cost FROM used WHERE true "
                "ON CONFLICT (name) DO UPDATE SET expires = (SELECT CASE WHEN buckets.expires + used.cost > "
                "excluded.expires THEN buckets.expires + used.cost ELSE excluded.expires END "
                "FROM used WHERE used.name = buckets.name) RETURNING name, expires - {now}",
                tuple(value for use in uses[:size] for value in (use.name, use.cost, use.elapsed)),
            )
            found.update(rows)
            del uses[:size]
        return found


MOST_COUNTED: Final = 10_000  # number at which counting ends: a longer queue is not better known for being counted


class Queues(msgspec.Struct, frozen=True):
    postings: int  # messages of the topic in the outbox, up to MOST_COUNTED
    posting_lag: float  # seconds since the oldest of them could have been delivered; 0 if none is late
    due_lag: float  # seconds since the oldest record was due; 0 if none is late
    submissions: int  # work items that nobody has taken, up to MOST_COUNTED


class MeasureQueues(Command, frozen=True):
    topic: str  # topic of the outbox

    def steps(self) -> Result[Queues]:
        waiting = f"SELECT 1 FROM outbox WHERE topic = ? LIMIT {MOST_COUNTED}"
        postings = yield Statement(f"SELECT count(*) FROM ({waiting}) AS counted", (self.topic,))
        late = yield Statement("SELECT {now} - min(due) FROM outbox WHERE topic = ?", (self.topic,))
        due = yield Statement("SELECT {now} - min(due) FROM records WHERE due IS NOT NULL")
        submitted = yield Statement(
            "SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = 'submission' AND state = 'queued' "
            f"AND expires > {{now}} LIMIT {MOST_COUNTED}) AS counted"
        )
        return Queues(postings[0][0], _lag(late), _lag(due), submitted[0][0])


def _lag(rows: Rows) -> float:
    return max(rows[0][0] or 0.0, 0.0)
