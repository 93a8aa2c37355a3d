"""Monitors: records that look at something again when it has changed; and the calls that RETRY can repeat."""

from __future__ import annotations

from typing import Final

from bespeak.state.store.commands.records import SOON, TOPIC
from bespeak.state.store.store import Command, Notify, Statement, Steps

MONITOR: Final = "monitor"  # kind of the records that are monitors
ACTIVE: Final = "active"
AGENT: Final = "agent"  # beginning of the target of a monitor that looks at an agent
_TOKEN: Final = 32
_DIGITS: Final = 12
_TARGET: Final = _TOKEN + _DIGITS + 3  # position of the target in a key, counted from 1

_OPEN: Final = f"kind = '{MONITOR}' AND state = '{ACTIVE}' AND due > {{now}}"


def monitor_key(token: str, target: str, version: int) -> str:
    """Return the key of a monitor with a token of 32 characters."""
    return f"{token} {version:0{_DIGITS}} {target}"


class NoteVersion(Command, frozen=True):
    """Note which version of its target a monitor has seen."""

    record_id: str
    key: str

    def steps(self) -> Steps:
        """Return nothing."""
        yield Statement("UPDATE records SET key = ? WHERE record_id = ?", (self.key, self.record_id))


class WakeMonitors(Command, frozen=True):
    """Make monitors due: those of records that have changed since they looked, or all that look at agents.

    One that is looking at this moment loses its claim, so that it looks again.
    """

    agents: bool = False

    def steps(self) -> Steps:
        """Return their number."""
        behind = f"substr(key, {_TARGET}, {len(AGENT) + 1}) = '{AGENT} '"
        if not self.agents:
            behind = (
                "record_id IN (SELECT m.record_id FROM records AS m JOIN records AS t "
                f"ON t.record_id = substr(m.key, {_TARGET}) WHERE m.kind = '{MONITOR}' AND m.state = '{ACTIVE}' "
                f"AND CAST(substr(m.key, {_TOKEN + 2}, {_DIGITS}) AS BIGINT) <> t.version)"
            )
        rows = yield Statement(
            f"UPDATE records SET due = {{now}}, fence = fence + 1 WHERE {_OPEN} AND {behind} RETURNING 1"
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
    """Keep a call and its answer. Another call of the same task does not displace one that failed or is repeated.

    The oldest call of an owner with too many makes room.
    """

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
            "INSERT INTO records (record_id, kind, owner, key, state, version, data, created, updated, due, fence, "
            "expires) VALUES (?, ?, ?, ?, ?, 1, ?, {now}, {now}, {now} + ?, 0, {now} + ?) "
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

    def steps(self) -> Steps:
        """Return their number."""
        rows = yield Statement(
            f"UPDATE records SET due = {{now}} WHERE kind = '{KEPT_CALL}' AND state = '{REPEATING}' AND due > {{now}} "
            "RETURNING 1"
        )
        if rows:
            yield Notify(TOPIC)
        return len(rows)
