"""Queues: how much waits in the store, and how long it has waited."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.state.store.command import Command, Rows, Statement, Steps

MOST_COUNTED: Final = 10_000
"""Number at which counting ends: a longer queue is not better known for being counted."""


class Queues(msgspec.Struct, frozen=True):
    """What waits."""

    postings: int
    """Messages of the topic in the outbox, up to MOST_COUNTED."""
    posting_lag: float
    """Seconds since the oldest of them could have been delivered; 0 if none is late."""
    due_lag: float
    """Seconds since the oldest record was due; 0 if none is late."""
    submissions: int
    """Work items that nobody has taken, up to MOST_COUNTED."""


class MeasureQueues(Command, frozen=True):
    """Measure what waits."""

    topic: str
    """Topic of the outbox."""

    def steps(self) -> Steps:
        """Return Queues."""
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
