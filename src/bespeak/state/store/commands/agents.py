"""Agents: their documents, lifecycle states and every change of state; and the delegations between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from bespeak.state.store.commands.endpoints import advance
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all, read_one

TOPIC: Final = "agents"  # topic to watch for changes of agents
RETIRED: Final = "retired"  # final state of an agent; its id is never issued again (core 7.1)
NAME_REST: Final = 90 * 86400.0  # seconds for which the name of a retired agent stays reserved (core 7.4)

_COLUMNS: Final = "agent_id, name, status, document, revision, updated"
_EVENT: Final = (
    "INSERT INTO lifecycle_events (agent_id, event, previous_status, status, actor, reason, at) "
    "VALUES (?, ?, ?, ?, ?, ?, {now})"
)


class AgentRow(msgspec.Struct, frozen=True):
    agent_id: str
    name: str
    status: str
    document: str | None  # JSON document; None if the document is a file of the deployment and only the state is stored
    revision: int  # number of changes of this row
    updated: float


class AgentMark(msgspec.Struct, frozen=True, gc=False):
    agent_id: str
    status: str
    revision: int


class Transition(msgspec.Struct, frozen=True):
    previous: str
    status: str
    noop: bool = False  # True if the agent was already in that state, so nothing changed


class LifecycleEvent(msgspec.Struct, frozen=True):
    event: str
    previous_status: str
    status: str
    actor: str
    reason: str
    at: float


class PutAgent(Command, frozen=True):
    """Add an agent or replace its document. An existing state is kept: only lifecycle events change it."""

    guards: ClassVar[bool] = True
    agent_id: str
    name: str
    status: str  # state of a new agent
    document: str  # JSON document
    actor: str

    def steps(self) -> Steps:
        """Return the agent's current state, or a Conflict: `agent-retired` or `name-taken`."""
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
    """Change the state of an agent if the transition is allowed, and record who did it and why."""

    guards: ClassVar[bool] = True
    agent_id: str
    event: str  # method that causes the change, such as `REVOKE`
    allowed_from: frozenset[str]
    status: str
    actor: str
    reason: str
    name: str | None = None
    assumed: str | None = None  # name and state from the agent's file, for an agent that is not in the store yet

    def steps(self) -> Steps:
        """Return a Transition, or a Conflict: `agent-unknown`, or `transition-impossible` with the current state."""
        rows = yield Statement("SELECT status FROM agents WHERE agent_id = ? {lock}", (self.agent_id,))
        previous = rows[0][0] if rows else self.assumed
        if previous is None:
            return Conflict("agent-unknown", {"agent_id": self.agent_id})
        if previous == self.status or previous not in self.allowed_from:
            return self._unchanged(previous)
        changed = yield Statement(
            "INSERT INTO agents (agent_id, name, status, document, revision, updated) VALUES (?, ?, ?, NULL, 1, {now}) "
            "ON CONFLICT (agent_id) DO UPDATE SET status = excluded.status, revision = agents.revision + 1, "
            "updated = excluded.updated WHERE agents.status = ? RETURNING 1",
            (self.agent_id, self.name or "", self.status, previous),
        )
        if not changed:  # somebody else put the first row there meanwhile
            rows = yield Statement("SELECT status FROM agents WHERE agent_id = ?", (self.agent_id,))
            return self._unchanged(rows[0][0])
        yield Statement(_EVENT, (self.agent_id, self.event, previous, self.status, self.actor, self.reason))
        yield Notify(TOPIC)
        return Transition(previous, self.status)

    def _unchanged(self, status: str) -> Transition | Conflict:
        if status == self.status:
            return Transition(status, status, noop=True)
        return Conflict("transition-impossible", {"status": status})


class ReadAgent(Command, frozen=True):
    agent_id: str

    def steps(self) -> Result[AgentRow | None]:
        return read_one(AgentRow, f"SELECT {_COLUMNS} FROM agents WHERE agent_id = ?", self.agent_id)


class ListAgents(Command, frozen=True):
    def steps(self) -> Result[list[AgentRow]]:
        return read_all(AgentRow, f"SELECT {_COLUMNS} FROM agents ORDER BY name, agent_id")


class MarkAgents(Command, frozen=True):
    """List the state and revision of every agent, for a server to compare with its own copy."""

    def steps(self) -> Result[list[AgentMark]]:
        return read_all(AgentMark, "SELECT agent_id, status, revision FROM agents")


class ReadLifecycle(Command, frozen=True):
    """Read the latest changes of an agent's state, oldest first."""

    agent_id: str
    limit: int = 100

    def steps(self) -> Steps:
        rows = yield Statement(
            "SELECT event, previous_status, status, actor, reason, at FROM lifecycle_events "
            "WHERE agent_id = ? ORDER BY position DESC LIMIT ?",
            (self.agent_id, self.limit),
        )
        return [LifecycleEvent(*row) for row in reversed(rows)]


class RecordDelegation(Command, frozen=True):
    guards: ClassVar[bool] = True
    delegation_id: str
    delegator: str
    delegate: str
    scope: str
    parent: str | None
    task: str | None
    expires: float

    def steps(self) -> Steps:
        """Return True, or a Conflict `delegation-known` if the id exists."""
        rows = yield Statement(
            "INSERT INTO delegations (delegation_id, delegator, delegate, scope, parent, task, created, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, {now}, ?) ON CONFLICT (delegation_id) DO NOTHING RETURNING 1",
            (self.delegation_id, self.delegator, self.delegate, self.scope, self.parent, self.task, self.expires),
        )
        return True if rows else Conflict("delegation-known", {"delegation_id": self.delegation_id})


REVISION: Final = "api_keys"  # topic of the number of changes, which `ReadRevision` reads


class ApiKeyRow(msgspec.Struct, frozen=True):
    key_id: str
    digest: bytes  # SHA-256 of the secret
    agent_id: str
    agent: str  # name of the agent when the key was made
    scopes: str  # scope tokens in the notation of Authority-Scope
    name: str
    created: float
    expires: float | None  # end in seconds since 1970; that of a revoked key is not later than its revocation
    revoked: float | None
    last_used: float | None

    def state(self, now: float) -> str:
        if self.revoked is not None:
            return "revoked"
        return "active" if self.expires is None or now < self.expires else "expired"


class AddApiKey(Command, frozen=True):
    guards: ClassVar[bool] = True
    key_id: str
    digest: bytes
    agent_id: str
    agent: str
    scopes: str
    name: str
    lifetime: float | None  # seconds; None for a key that does not end

    def steps(self) -> Steps:
        """Return True, or a Conflict `key-known` if the id exists."""
        end = "NULL" if self.lifetime is None else "{now} + ?"
        rows = yield Statement(
            "INSERT INTO api_keys (key_id, digest, agent_id, agent, scopes, name, created, expires) "
            f"VALUES (?, ?, ?, ?, ?, ?, {{now}}, {end}) ON CONFLICT (key_id) DO NOTHING RETURNING 1",
            (
                *(self.key_id, self.digest, self.agent_id, self.agent, self.scopes, self.name),
                *(() if self.lifetime is None else (self.lifetime,)),
            ),
        )
        if not rows:
            return Conflict("key-known", {"key_id": self.key_id})
        yield from advance(REVISION)
        yield Notify(TOPIC)
        return True


class RevokeApiKey(Command, frozen=True):
    """End a key now and for ever."""

    guards: ClassVar[bool] = True
    key_id: str

    def steps(self) -> Steps:
        """Return True, False if it was revoked before, or a Conflict `key-unknown`."""
        rows = yield Statement("SELECT revoked FROM api_keys WHERE key_id = ? {lock}", (self.key_id,))
        if not rows:
            return Conflict("key-unknown", {"key_id": self.key_id})
        if rows[0][0] is not None:
            return False
        yield Statement(
            "UPDATE api_keys SET revoked = {now}, "
            "expires = CASE WHEN expires < {now} THEN expires ELSE {now} END WHERE key_id = ?",
            (self.key_id,),
        )
        yield from advance(REVISION)
        yield Notify(TOPIC)
        return True


class ListApiKeys(Command, frozen=True):
    def steps(self) -> Result[list[ApiKeyRow]]:
        columns = ", ".join(ApiKeyRow.__struct_fields__)
        return read_all(ApiKeyRow, f"SELECT {columns} FROM api_keys ORDER BY created, key_id")


class NoteKeyUses(Command, frozen=True):
    """Record when keys were used, unless another process has just done so. No watcher needs to know."""

    uses: Mapping[str, float]  # times in seconds since 1970, by key id
    every: float

    def steps(self) -> Steps:
        # In one order, so that two processes do not wait for each other.
        for key_id, at in sorted(self.uses.items()):
            sql = "UPDATE api_keys SET last_used = ? WHERE key_id = ? AND (last_used IS NULL OR last_used <= ?)"
            yield Statement(sql, (at, key_id, at - self.every))
        return True
