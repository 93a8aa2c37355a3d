"""Events that agents have logged: the latest ones of each agent, within a number and a size."""

from __future__ import annotations

from typing import Final

from bespeak.state.store.commands.records import PutRecord, Record
from bespeak.state.store.store import Command, Result, Statement

KIND: Final = "log"  # kind of the records that are events
_DROPPED: Final = 64  # events that are removed at a time


class PutEvent(Command, frozen=True):
    """Add an event; the oldest ones of its owner make room for it."""

    record_id: str
    owner: str
    data: str
    most: int  # limit of events of one owner
    most_size: int  # limit of characters of their data together

    def steps(self) -> Result[Record]:
        size = len(self.data)
        rows = yield Statement(
            "UPDATE event_counters SET events = events + 1, size = size + ? WHERE owner = ? RETURNING events, size",
            (size, self.owner),
        )
        if not rows:  # the first event, or the first since events are counted
            known = yield Statement(
                "SELECT count(*), coalesce(sum(length(data)), 0) FROM records WHERE kind = ? AND owner = ?",
                (KIND, self.owner),
            )
            rows = yield Statement(
                "INSERT INTO event_counters (owner, events, size) VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE "
                "SET events = event_counters.events + 1, size = event_counters.size + ? RETURNING events, size",
                (self.owner, known[0][0] + 1, int(known[0][1]) + size, size),
            )
        count, total = rows[0]
        while count > self.most or total > self.most_size:
            dropped = yield Statement(
                "DELETE FROM records WHERE record_id IN (SELECT record_id FROM records WHERE kind = ? AND owner = ? "
                "ORDER BY created, record_id LIMIT ?) RETURNING length(data)",
                (KIND, self.owner, min(max(count - self.most, 1), _DROPPED)),
            )
            if not dropped:
                break
            count, total = count - len(dropped), total - sum(row[0] for row in dropped)
            yield Statement(
                "UPDATE event_counters SET events = ?, size = ? WHERE owner = ?", (count, total, self.owner)
            )
        record: Record = yield from PutRecord(self.record_id, KIND, self.owner, "logged", self.data).steps()
        return record
