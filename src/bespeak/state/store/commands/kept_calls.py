"""Calls that RETRY can repeat: the latest one of each task that has failed, else the latest one."""

from __future__ import annotations

from typing import Final

from bespeak.state.store.command import Command, Notify, Statement, Steps
from bespeak.state.store.commands.records import SOON, TOPIC

KIND: Final = "call"
"""Kind of the records that are calls."""
FAILED: Final = "failed"
SUCCEEDED: Final = "succeeded"
SCHEDULED: Final = "scheduled"
REPEATING: Final = "repeating"
"""A process repeats the call now."""


class KeepCall(Command, frozen=True):
    """Keep a call and its answer. Another call of the same task does not displace one that failed or is repeated.

    The oldest call of an owner with too many makes room.
    """

    record_id: str
    owner: str
    key: str
    """Id of the record and digest of the request."""
    state: str
    data: str
    lifetime: float
    """Seconds for which it is kept."""
    most: int
    """Limit of calls of one owner."""
    delay: float | None = None
    """Seconds until it is repeated; None if it is not scheduled."""

    def steps(self) -> Steps:
        """Return True if it is kept."""
        rows = yield Statement(
            "SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = ? AND owner = ? LIMIT ?) AS counted",
            (KIND, self.owner, self.most),
        )
        if rows[0][0] >= self.most:
            yield Statement(
                "DELETE FROM records WHERE record_id IN (SELECT record_id FROM records "
                f"WHERE kind = ? AND owner = ? AND state IN ('{FAILED}', '{SUCCEEDED}') ORDER BY updated LIMIT 1)",
                (KIND, self.owner),
            )
        rows = yield Statement(
            "INSERT INTO records (record_id, kind, owner, key, state, version, data, created, updated, due, fence, "
            "expires) VALUES (?, ?, ?, ?, ?, 1, ?, {now}, {now}, {now} + ?, 0, {now} + ?) "
            "ON CONFLICT (record_id) DO UPDATE SET key = excluded.key, state = excluded.state, data = excluded.data, "
            "version = records.version + 1, updated = {now}, due = excluded.due, expires = excluded.expires "
            f"WHERE records.key = excluded.key OR records.state = '{SUCCEEDED}' "
            f"OR (records.state = '{FAILED}' AND excluded.state = '{FAILED}') RETURNING 1",
            (self.record_id, KIND, self.owner, self.key, self.state, self.data, self.delay, self.lifetime),
        )
        if rows and self.delay is not None and self.delay < SOON:
            yield Notify(TOPIC)
        return bool(rows)


class ReleaseCalls(Command, frozen=True):
    """Make calls due whose repetition was interrupted, where no other process can be repeating them."""

    def steps(self) -> Steps:
        """Return their number."""
        rows = yield Statement(
            f"UPDATE records SET due = {{now}} WHERE kind = '{KIND}' AND state = '{REPEATING}' AND due > {{now}} "
            "RETURNING 1"
        )
        if rows:
            yield Notify(TOPIC)
        return len(rows)
