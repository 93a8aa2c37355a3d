"""Records of any kind and owner, as operators see them: counted, found and expired."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.state.store.command import Command, Notify, Statement, Steps
from bespeak.state.store.commands.records import Record, topic_of

_COLUMNS: Final = ", ".join(Record.__struct_fields__)


class KindCount(msgspec.Struct, frozen=True):
    """Number of the records of one kind in one state."""

    kind: str
    state: str
    records: int


class CountRecords(Command, frozen=True):
    """Count the records that have not expired, by kind and state."""

    def steps(self) -> Steps:
        """Return a list of KindCounts."""
        rows = yield Statement(
            "SELECT kind, state, count(*) FROM records WHERE expires > {now} GROUP BY kind, state ORDER BY kind, state"
        )
        return [KindCount(*row) for row in rows]


class FindAnyRecord(Command, frozen=True):
    """Find a record of any kind, even if it has expired but is still stored."""

    record_id: str

    def steps(self) -> Steps:
        """Return a Record, or None."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM records WHERE record_id = ?", (self.record_id,))
        return Record(*rows[0]) if rows else None


class ExpireRecord(Command, frozen=True):
    """End the life of a record: nobody finds it from now on, and nothing of it is due. Steps of a workflow are removed.

    A process that works on it loses its claim.
    """

    record_id: str

    def steps(self) -> Steps:
        """Return the kind of the record; None if there is no such record."""
        rows = yield Statement(
            "UPDATE records SET expires = {now}, due = NULL, fence = fence + 1 WHERE record_id = ? RETURNING kind",
            (self.record_id,),
        )
        if not rows:
            return None
        yield Statement("DELETE FROM steps WHERE workflow_id = ?", (self.record_id,))
        yield Notify(topic_of(rows[0][0]))
        return rows[0][0]
