"""Agents: their documents, the state each is in, and every change of that state."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Notify, Statement, Steps

TOPIC: Final = "agents"
"""What to watch for changes of agents."""

RETIRED: Final = "retired"
"""The state that no agent leaves: its id is never handed out again (core 7.1)."""

NAME_REST: Final = 90 * 86400.0
"""Seconds for which nobody else gets the name of a retired agent (core 7.4)."""

_COLUMNS: Final = "agent_id, name, status, document, revision, updated"
_EVENT: Final = (
    "INSERT INTO lifecycle_events (agent_id, event, previous_status, status, actor, reason, at) "
    "VALUES (?, ?, ?, ?, ?, ?, {now})"
)


class AgentRow(msgspec.Struct, frozen=True):
    """An agent as it is kept."""

    agent_id: str
    name: str
    status: str
    document: str | None
    """JSON; None for an agent whose document is a file of the deployment and whose state alone is kept here."""
    revision: int
    """Counts the changes of this row."""
    updated: float


class AgentMark(msgspec.Struct, frozen=True, gc=False):
    """The state of an agent, and whether anything else of it has changed."""

    agent_id: str
    status: str
    revision: int


class Transition(msgspec.Struct, frozen=True):
    """What became of an agent's state."""

    previous: str
    status: str
    noop: bool = False
    """Whether it was in that state already, so that nothing was changed."""


class LifecycleEvent(msgspec.Struct, frozen=True):
    """One change of an agent's state."""

    event: str
    previous_status: str
    status: str
    actor: str
    reason: str
    at: float


class PutAgent(Command, frozen=True):
    """Add an agent or replace its document. A state it has already stays: only lifecycle events change that."""

    guards: ClassVar[bool] = True
    agent_id: str
    name: str
    status: str
    """The state of an agent that is new."""
    document: str
    """JSON."""
    actor: str

    def steps(self) -> Steps:
        """The state the agent is in now, or a Conflict: `agent-retired`, `name-taken`."""
        rows = yield Statement("SELECT status FROM agents WHERE agent_id = ? {lock}", (self.agent_id,))
        if rows and rows[0][0] == RETIRED:
            return Conflict("agent-retired", {"agent_id": self.agent_id})
        others = yield Statement(
            "SELECT agent_id FROM agents WHERE name = ? AND agent_id <> ? AND (status <> ? OR updated > {now} - ?)",
            (self.name, self.agent_id, RETIRED, NAME_REST),
        )
        if others:
            return Conflict("name-taken", {"agent_id": others[0][0]})
        yield Statement(
            "INSERT INTO agents (agent_id, name, status, document, revision, updated) VALUES (?, ?, ?, ?, 1, {now}) "
            "ON CONFLICT (agent_id) DO UPDATE SET name = excluded.name, document = excluded.document, "
            "revision = agents.revision + 1, updated = excluded.updated",
            (self.agent_id, self.name, self.status, self.document),
        )
        if not rows:
            yield Statement(_EVENT, (self.agent_id, "REGISTER", "", self.status, self.actor, ""))
        yield Notify(TOPIC)
        return rows[0][0] if rows else self.status


class SetAgentStatus(Command, frozen=True):
    """Change the state of an agent, if that can be, and keep who did it and why."""

    guards: ClassVar[bool] = True
    agent_id: str
    event: str
    """The method, `REVOKE`."""
    allowed_from: frozenset[str]
    status: str
    actor: str
    reason: str
    name: str | None = None
    assumed: str | None = None
    """Name and state by the agent's file, for an agent the store knows nothing of yet."""

    def steps(self) -> Steps:
        """A Transition, or a Conflict: `agent-unknown`, or `transition-impossible` with the state it is in."""
        rows = yield Statement("SELECT status FROM agents WHERE agent_id = ? {lock}", (self.agent_id,))
        previous = rows[0][0] if rows else self.assumed
        if previous is None:
            return Conflict("agent-unknown", {"agent_id": self.agent_id})
        if previous == self.status:
            return Transition(previous, self.status, noop=True)
        if previous not in self.allowed_from:
            return Conflict("transition-impossible", {"status": previous})
        changed = yield Statement(
            "INSERT INTO agents (agent_id, name, status, document, revision, updated) VALUES (?, ?, ?, NULL, 1, {now}) "
            "ON CONFLICT (agent_id) DO UPDATE SET status = excluded.status, revision = agents.revision + 1, "
            "updated = excluded.updated WHERE agents.status = ? RETURNING 1",
            (self.agent_id, self.name or "", self.status, previous),
        )
        if not changed:  # somebody else put the first row there meanwhile
            rows = yield Statement("SELECT status FROM agents WHERE agent_id = ?", (self.agent_id,))
            previous = rows[0][0]
            if previous == self.status:
                return Transition(previous, self.status, noop=True)
            return Conflict("transition-impossible", {"status": previous})
        yield Statement(_EVENT, (self.agent_id, self.event, previous, self.status, self.actor, self.reason))
        yield Notify(TOPIC)
        return Transition(previous, self.status)


class ReadAgent(Command, frozen=True):
    """An agent by its id."""

    agent_id: str

    def steps(self) -> Steps:
        """An AgentRow or None."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM agents WHERE agent_id = ?", (self.agent_id,))
        return AgentRow(*rows[0]) if rows else None


class ListAgents(Command, frozen=True):
    """All agents, by name."""

    def steps(self) -> Steps:
        """AgentRows."""
        rows = yield Statement(f"SELECT {_COLUMNS} FROM agents ORDER BY name, agent_id")
        return [AgentRow(*row) for row in rows]


class MarkAgents(Command, frozen=True):
    """The states of all agents, and how often each was changed: what a server compares with what it holds."""

    def steps(self) -> Steps:
        """AgentMarks."""
        rows = yield Statement("SELECT agent_id, status, revision FROM agents")
        return [AgentMark(*row) for row in rows]


class ReadLifecycle(Command, frozen=True):
    """The latest changes of an agent's state, oldest of them first."""

    agent_id: str
    limit: int = 100

    def steps(self) -> Steps:
        """LifecycleEvents."""
        rows = yield Statement(
            "SELECT event, previous_status, status, actor, reason, at FROM lifecycle_events "
            "WHERE agent_id = ? ORDER BY position DESC LIMIT ?",
            (self.agent_id, self.limit),
        )
        return [LifecycleEvent(*row) for row in reversed(rows)]
