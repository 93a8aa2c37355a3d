"""Monitors: records that look at something again when it has changed.

The key of a monitor says what it looks at and which version it has seen, so that one statement finds those that are
behind.
"""

from __future__ import annotations

from typing import Final

from bespeak.state.store.command import Command, Notify, Statement, Steps
from bespeak.state.store.commands.records import TOPIC

MONITOR: Final = "monitor"
"""Kind of the records that are monitors."""
ACTIVE: Final = "active"
AGENT: Final = "agent"
"""Beginning of the target of a monitor that looks at an agent."""
_TOKEN: Final = 32
_DIGITS: Final = 12
_TARGET: Final = _TOKEN + _DIGITS + 3
"""Position of the target in a key, counted from 1."""

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
