"""Monitors: records that look at something again when it has changed; and the calls that RETRY can repeat."""

from __future__ import annotations

from typing import ClassVar, Final

from bespeak.state.store.commands.records import COLUMNS, SOON, TOPIC, PutRecord, put_with, wake
from bespeak.state.store.store import Command, Notify, Result, Statement, Steps

MONITOR: Final = "monitor"  # kind of the records that are monitors
ACTIVE: Final = "active"
AGENT: Final = "agent"  # kind of the target of a monitor that looks at an agent
RECORD: Final = "record"  # kind of the target of a monitor that looks at a record
ENDPOINT: Final = "endpoint"
SERVER: Final = "server"


class PutMonitor(Command, frozen=True):
    guards: ClassVar[bool] = True
    record: PutRecord
    target_kind: str
    target: str
    version: int  # version of the target that it has seen

    def steps(self) -> Steps:
        """Return the Record, or a Conflict: too-many."""
        return put_with(self.record, target_kind=self.target_kind, target=self.target, target_version=self.version)


class NoteVersion(Command, frozen=True):
    record_id: str
    version: int

    def steps(self) -> Result[None]:
        yield Statement("UPDATE records SET target_version = ? WHERE record_id = ?", (self.version, self.record_id))


class WakeMonitors(Command, frozen=True):
    """Make monitors due of changed records, or all that look at agents. One that is looking loses its claim."""

    agents: bool = False

    def steps(self) -> Result[int]:
        behind = f"target_kind = '{AGENT}'"
        if not self.agents:
            behind = (
                "record_id IN (SELECT m.record_id FROM records AS m JOIN records AS t ON t.record_id = m.target "
                f"WHERE m.kind = '{MONITOR}' AND m.state = '{ACTIVE}' AND m.target_kind = '{RECORD}' "
                "AND m.target_version <> t.version)"
            )
        rows = yield Statement(
            "UPDATE records SET due = {now}, fence = fence + 1 "
            f"WHERE kind = '{MONITOR}' AND state = '{ACTIVE}' AND due > {{now}} AND {behind} RETURNING 1"
        )
        if rows:
            yield Notify(TOPIC)
        return len(rows)


KEPT_CALL: Final = "call"  # kind of the records that are calls
FAILED: Final = "failed"
SUCCEEDED: Final = "succeeded"
SCHEDULED: Final = "scheduled"
REPEATING: Final = "repeating"  # a process repeats the call now


class KeepCall(Command, frozen=True):
    """Keep a call and its answer. One of a task that failed or is repeated stays; the oldest of an owner makes room."""

    record_id: str
    owner: str
    key: str  # id of the record and digest of the request
    state: str
    data: str
    lifetime: float  # seconds for which it is kept
    most: int  # limit of calls of one owner
    delay: float | None = None  # seconds until it is repeated; None if it is not scheduled

    def steps(self) -> Steps:
        """Return True if it is kept."""
        rows = yield Statement(
            "SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = ? AND owner = ? LIMIT ?) AS counted",
            (KEPT_CALL, self.owner, self.most),
        )
        if rows[0][0] >= self.most:
            yield Statement(
                "DELETE FROM records WHERE record_id IN (SELECT record_id FROM records "
                f"WHERE kind = ? AND owner = ? AND state IN ('{FAILED}', '{SUCCEEDED}') ORDER BY updated LIMIT 1)",
                (KEPT_CALL, self.owner),
            )
        rows = yield Statement(
            f"INSERT INTO records ({COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, 1, ?, {now}, {now}, {now} + ?, 0, {now} + ?) "
            "ON CONFLICT (record_id) DO UPDATE SET key = excluded.key, state = excluded.state, data = excluded.data, "
            "version = records.version + 1, updated = {now}, due = excluded.due, expires = excluded.expires "
            f"WHERE records.key = excluded.key OR records.state = '{SUCCEEDED}' "
            f"OR (records.state = '{FAILED}' AND excluded.state = '{FAILED}') RETURNING 1",
            (self.record_id, KEPT_CALL, self.owner, self.key, self.state, self.data, self.delay, self.lifetime),
        )
        if rows and self.delay is not None and self.delay < SOON:
            yield Notify(TOPIC)
        return bool(rows)


class ReleaseCalls(Command, frozen=True):
    """Make calls due whose repetition was interrupted, where no other process can be repeating them."""

    def steps(self) -> Result[int]:
        return wake(f"kind = '{KEPT_CALL}' AND state = '{REPEATING}'")
