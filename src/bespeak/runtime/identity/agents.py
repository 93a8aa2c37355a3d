"""The agents a server knows, from its files and its store; the store takes precedence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bespeak.contract.agent import ACTIVE, UNREADABLE, Agent
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.principal import Scopes
from bespeak.runtime.background import Follower
from bespeak.state.identity.agent_json import parse_agent
from bespeak.state.store.commands.agents import TOPIC, AgentMark, AgentRow, ListAgents, MarkAgents, ReadAgent

if TYPE_CHECKING:
    from bespeak.state.identity.credentials import ApiKeys
    from bespeak.state.identity.jws import PublicKey
    from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

_ONE_BY_ONE: Final = 16  # maximum number of changed agents that are read by id; at startup all are read at once
STALE: Final = "agents-stale"  # code of a refusal because the copy of the agents is too old to act on


class Agents(Follower):
    """The agents, read by every request and replaced as a whole when something changes."""

    def __init__(self, filed: Iterable[Agent] = (), *, stale_after: float | None = None) -> None:
        super().__init__(TOPIC, self._take_in, stale_after=stale_after, flip=self._flip)
        self._filed = {agent.agent_id: agent for agent in filed}
        self._rows: dict[str, AgentRow] = {}
        self._stored: dict[str, Agent | None] = {}
        self._known: Mapping[str, Agent] = dict(self._filed)
        self._named = _by_name(self._known.values())
        self._keys: dict[str, PublicKey | None] = {}
        self._watchers: list[Callable[[], None]] = []
        self._age_watchers: list[Callable[[bool], None]] = []
        self.revision = 0  # counter of changes, by which derived values learn that they are stale
        self.keys: ApiKeys | None = None  # API keys of the agents, read together with them; None if none are accepted

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def get(self, agent_id: str | None) -> Agent | None:
        return self._known.get(agent_id) if agent_id is not None else None

    def named(self, name: str) -> Agent | None:
        """Return the agent with a local name in any case (core 3). A retired agent's name can be reused."""
        return self._named.get(name.casefold())

    def changed_at(self, agent_id: str) -> float | None:
        """Return the time of the last change in the store, in seconds since 1970; None for an agent of a file."""
        row = self._rows.get(agent_id)
        return row.updated if row is not None else None

    @property
    def updated(self) -> float:
        """Time of the latest change in the store; 0 if there is none. It is the same in every process."""
        return max((row.updated for row in self._rows.values()), default=0.0)

    def grant_of(self, agent_id: str) -> Scopes | None:
        """Return the authority of an agent; None if it is not known and active."""
        agent = self._known.get(agent_id)
        return Scopes(agent.scopes) if agent is not None and agent.status == ACTIVE else None

    def key_of(self, agent_id: str) -> PublicKey | None:
        """Return the Ed25519 public key of an agent, if its document has one."""
        if agent_id not in self._keys:
            agent = self._known.get(agent_id)
            if agent is None:
                return None
            raw = decode64(agent.public_key["x"]) if agent.public_key is not None else None
            self._keys[agent_id] = None
            if raw is not None and len(raw) == 32:
                from bespeak.state.identity.jws import PublicKey  # noqa: PLC0415 - loads cryptography, for agents with keys

                self._keys[agent_id] = PublicKey.from_public_bytes(raw)
        return self._keys[agent_id]

    def watch(self, watcher: Callable[[], None]) -> None:
        self._watchers.append(watcher)

    def watch_age(self, watcher: Callable[[bool], None]) -> None:
        """Call `watcher` with True when the store could not be read for too long, and with False when it is read."""
        self._age_watchers.append(watcher)

    def _flip(self, stale: bool) -> None:
        if stale:
            _logger.warning(
                "the agents were last read %g s ago; until the store can be read, only informational calls of "
                "anonymous callers are answered",
                self._stale_after,
            )
        for watcher in self._age_watchers:
            watcher(stale)

    async def _take_in(self, store: Store) -> None:
        marks: list[AgentMark] = await store.read(MarkAgents())
        held = {agent_id: row.revision for agent_id, row in self._rows.items()}
        changed = [mark.agent_id for mark in marks if held.get(mark.agent_id) != mark.revision]
        # With the agents, so that a key is no longer believed than an agent is, however old the copy is.
        new_keys = self.keys is not None and await self.keys.load(store)
        if not (changed or new_keys) and len(marks) == len(self._rows):
            return
        if len(changed) > _ONE_BY_ONE:
            found: list[AgentRow | None] = await store.read(ListAgents())
        else:
            found = [await store.read(ReadAgent(agent_id)) for agent_id in changed]
        marked = {mark.agent_id for mark in marks}
        rows = {agent_id: row for agent_id, row in self._rows.items() if agent_id in marked}
        rows |= {row.agent_id: row for row in found if row is not None}
        # In the order in which a process that starts now reads them: all publish the same manifest.
        rows = dict(sorted(rows.items(), key=lambda item: (item[1].name, item[0])))
        self._stored = {
            row.agent_id: self._stored[row.agent_id] if self._rows.get(row.agent_id) is row else self._read(row)
            for row in rows.values()
        }
        self._rows = rows
        stored = {agent_id: agent for agent_id, agent in self._stored.items() if agent is not None}
        self._known = {**self._filed, **stored}
        self._named = _by_name(self._known.values())
        self._keys = {}
        self.revision += 1
        for watcher in self._watchers:
            watcher()

    def _read(self, row: AgentRow) -> Agent | None:
        """Build the agent of a row. Return None for an otherwise unknown agent with no more than the state `active`."""
        if row.document is None:
            filed = self._filed.get(row.agent_id)
            if filed is None:
                return None if row.status == ACTIVE else Agent(agent_id=row.agent_id, name=row.name, status=row.status)
            return filed if filed.status == UNREADABLE and row.status == ACTIVE else replace(filed, status=row.status)
        agent, findings = parse_agent(row.document, f"agent {row.agent_id}")
        if agent is None or agent.status == UNREADABLE or agent.agent_id != row.agent_id:
            _logger.error(
                "the document of the agent %s cannot be used: %s", row.agent_id, "; ".join(map(str, findings))
            )
            status = UNREADABLE if row.status == ACTIVE else row.status
            return Agent(agent_id=row.agent_id, name=row.name, status=status)
        return replace(agent, status=row.status)


def _by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    """Map local names to agents; an active agent takes precedence over others of the same name."""
    named: dict[str, Agent] = {}
    for agent in agents:
        label = agent.label.casefold()
        if label not in named or (agent.is_active and not named[label].is_active):
            named[label] = agent
    return named


def may_delegate(agent: Agent) -> bool:
    """Return True if an agent's document lets it delegate its authority (core 7.3)."""
    return agent.delegation_permitted is not False and agent.max_delegation_depth != 0
