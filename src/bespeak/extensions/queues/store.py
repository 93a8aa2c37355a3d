"""Items of queues in the store: records of kind `submission` whose channel is the queue."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.runtime.handling import to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import COLUMNS, ChangeRecord, Record, RenewRecords, list_where
from bespeak.state.store.store import Command, Result, Statement, read_all, read_number

SUBMISSION: Final = "submission"
QUEUED: Final = "queued"
RUNNING: Final = "running"
DONE: Final = "done"
DEAD: Final = "dead"  # refused, or failed as often as the queue tries
CANCELLED: Final = "cancelled"
KEPT: Final = 30 * 86400.0  # seconds for which an item can be looked up after its end
MOST_COUNTED: Final = 1000  # items up to which a position is counted


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of an item."""

    queue: str
    payload: dict[str, Any]
    priority: int
    authority: Authority
    joined: bool = False  # True if a handler of the service submitted it, so that no scope of the queue is needed
    callback: str | None = None
    result: Any = None
    error: dict[str, Any] | None = None  # code and message of the last failure
    forgiven: int = 0  # claims that do not count as attempts: those before an operator tried it again

    @property
    def outcome(self) -> dict[str, Any]:
        """Result and error, as far as there are."""
        return {name: one for name, one in (("result", self.result), ("error", self.error)) if one is not None}


decode_item = msgspec.json.Decoder(Item).decode


class ClaimItems(Command, frozen=True):
    """Claim items of a queue that wait, or whose process has died. The number of claims is their fence."""

    queue: str
    limit: int
    lease: float
    held: frozenset[tuple[str, int]] = frozenset()  # id and fence of what this process works on

    def steps(self) -> Result[list[Record]]:
        rows = yield Statement(
            f"SELECT {COLUMNS} FROM records WHERE kind = '{SUBMISSION}' AND channel = ? AND due <= (SELECT {{now}}) "
            "ORDER BY due LIMIT ? {skip}",
            (self.queue, self.limit),
        )
        found = [Record(*row) for row in rows]
        # Leases end too early if the clock jumps or the process was stopped; what it works on has not been abandoned.
        kept = self.held.intersection((record.record_id, record.fence) for record in found)
        if kept:
            yield from RenewRecords(RUNNING, tuple(kept), self.lease).steps()
            found = [record for record in found if (record.record_id, record.fence) not in kept]
        if found:
            # By id: SQLite updates chosen rows twenty times faster than the rows of a subquery with RETURNING.
            places = ", ".join("?" * len(found))
            yield Statement(
                f"UPDATE records SET state = '{RUNNING}', due = {{now}} + ?, fence = fence + 1, version = version + 1, "
                f"updated = {{now}} WHERE record_id IN ({places})",
                (self.lease, *(record.record_id for record in found)),
            )
        return [msgspec.structs.replace(record, state=RUNNING, fence=record.fence + 1) for record in found]


class NextItem(Command, frozen=True):
    """Tell in how many seconds the next item of a queue is due; None if none is."""

    queue: str

    def steps(self) -> Result[float | None]:
        rows = yield Statement(
            f"SELECT due - {{now}} FROM records WHERE kind = '{SUBMISSION}' AND channel = ? AND due IS NOT NULL "
            "ORDER BY due LIMIT 1",
            (self.queue,),
        )
        return rows[0][0] if rows else None


class CountBefore(Command, frozen=True):
    """Count the items of a queue that come before one, up to a limit."""

    queue: str
    due: float

    def steps(self) -> Result[int]:
        return read_number(
            f"SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = '{SUBMISSION}' AND channel = ? AND due < ? "
            f"AND state = '{QUEUED}' LIMIT ?) AS earlier",
            *(self.queue, self.due, MOST_COUNTED),
        )


class QueueCount(msgspec.Struct, frozen=True):
    queue: str
    state: str
    count: int


class CountItems(Command, frozen=True):
    """Count the items by queue and state."""

    def steps(self) -> Result[list[QueueCount]]:
        return read_all(
            QueueCount,
            f"SELECT coalesce(channel, ''), state, count(*) FROM records WHERE kind = '{SUBMISSION}' "
            "AND expires > {now} GROUP BY channel, state ORDER BY channel, state",
        )


class ListItems(Command, frozen=True):
    """List the items of a queue in one state, the oldest first."""

    queue: str
    state: str
    limit: int

    def steps(self) -> Result[list[Record]]:
        where = {"kind = ?": (SUBMISSION,), "channel = ?": (self.queue,), "state = ?": (self.state,)}
        return list_where({**where, "expires > {now}": ()}, self.limit)


def retry_item(record: Record) -> ChangeRecord:
    """Return the command that puts a dead item back into its queue, with all its attempts."""
    data = to_json(msgspec.structs.replace(decode_item(record.data), forgiven=record.fence))
    return ChangeRecord(record.record_id, (SUBMISSION,), (DEAD,), QUEUED, data=data, delay=0.0, version=record.version)
