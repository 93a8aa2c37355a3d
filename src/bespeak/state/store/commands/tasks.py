"""Tasks that an escalation has paused, and those that its decision has stopped (core 4.9)."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.protocol.exchange.task_id import stored_task_id
from bespeak.state.store.command import Command, Notify, Statement, Steps

TOPIC: Final = "tasks"
"""Topic to watch for paused and released tasks."""

KEPT_AFTER: Final = 30 * 86400.0
"""Seconds for which a task whose escalation was rejected stays stopped."""

_UNTIL_DECIDED: Final = 1e15
_SELECT: Final = (
    "SELECT p.agent_id, p.task_id, c.case_id, c.recipient, c.state, c.reason "
    "FROM paused_tasks AS p JOIN cases AS c ON c.case_id = p.case_id WHERE p.expires > {now}"
)


class PausedTask(msgspec.Struct, frozen=True):
    """A task of an agent that must not continue."""

    agent_id: str
    task_id: str
    case_id: str
    """The escalation."""
    recipient: str
    state: str
    """State of the escalation: pending, deferred or rejected."""
    reason: str | None
    """Reason of its decision."""


class PauseTask(Command, frozen=True):
    """Pause a task until the case is decided, for everyone who works on it."""

    case_id: str
    task_id: str
    agents: tuple[str, ...]

    def steps(self) -> Steps:
        """Return None."""
        for agent_id in dict.fromkeys(self.agents):
            yield Statement(
                "INSERT INTO paused_tasks (agent_id, task_id, case_id, expires) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (agent_id, task_id, case_id) DO NOTHING",
                (agent_id, stored_task_id(self.task_id), self.case_id, _UNTIL_DECIDED),
            )
        yield Notify(TOPIC)


class ReleaseTask(Command, frozen=True):
    """Let the task of an accepted escalation continue; keep that of a rejected one stopped for a while."""

    case_id: str
    accepted: bool

    def steps(self) -> Steps:
        """Return None."""
        if self.accepted:
            yield Statement("DELETE FROM paused_tasks WHERE case_id = ?", (self.case_id,))
        else:
            yield Statement("UPDATE paused_tasks SET expires = {now} + ? WHERE case_id = ?", (KEPT_AFTER, self.case_id))
        yield Notify(TOPIC)


class ListPausedTasks(Command, frozen=True):
    """List paused and stopped tasks."""

    limit: int

    def steps(self) -> Steps:
        """Return a list of PausedTasks."""
        rows = yield Statement(f"{_SELECT} LIMIT ?", (self.limit,))
        return [PausedTask(*row) for row in rows]


class FindPausedTask(Command, frozen=True):
    """Find a paused task of any of the agents."""

    task_id: str
    agents: tuple[str, ...]

    def steps(self) -> Steps:
        """Return a PausedTask, or None."""
        marks = ", ".join("?" for _ in self.agents)
        rows = yield Statement(
            f"{_SELECT} AND p.task_id = ? AND p.agent_id IN ({marks}) LIMIT 1",
            (stored_task_id(self.task_id), *self.agents),
        )
        return PausedTask(*rows[0]) if rows else None
