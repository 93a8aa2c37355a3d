"""Agents of files and of the store as one, taken in as they change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.principal import Scopes
from bespeak.runtime.identity.agents import Agents
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

FILED = "1" * 64
STORED = "2" * 64


@pytest.fixture
async def store(anyio_backend: Any) -> AsyncIterator[Store]:
    opened = SqliteStore.in_memory()
    await opened.start()
    yield opened
    await opened.close()


def put(agent_id: str = STORED, name: str = "desk", **members: Any) -> PutAgent:
    document = {"agent_id": agent_id, "name": name, **members}
    return PutAgent(agent_id, name, "active", msgspec.json.encode(document).decode(), "operator")


def suspend(agent_id: str, allowed_from: frozenset[str] = frozenset({"active"}), **fields: Any) -> SetAgentStatus:
    return SetAgentStatus(agent_id, "DEACTIVATE", allowed_from, "suspended", "operator", "", **fields)


def filed(**fields: Any) -> Agents:
    return Agents([Agent(agent_id=FILED, name="lobby", scopes=("booking:*",), **fields)])


async def changed(agents: Agents, seen: int) -> None:
    """Wait until the agents are another revision."""
    arrived = asyncio.Event()
    agents.watch(arrived.set)
    if agents.revision == seen:
        await asyncio.wait_for(arrived.wait(), 10)


async def test_agents_of_both_places_are_known(store: Store) -> None:
    await store.do(put(scopes_accepted=["calendar:read"]))
    agents = filed()
    await agents.follow(store)
    assert {agent.agent_id for agent in agents} == {FILED, STORED}
    assert agents.grant_of(STORED) == Scopes(["calendar:read"])
    assert agents.grant_of(FILED) == Scopes(["booking:*"])
    assert agents.get("3" * 64) is agents.get(None) is agents.grant_of("3" * 64) is None


async def test_the_store_has_the_last_word_on_documents_and_states(store: Store) -> None:
    await store.do(put(FILED, "lobby", scopes_accepted=["calendar:read"]))
    await store.do(suspend(FILED))
    agents = filed()
    await agents.follow(store)
    agent = agents.get(FILED)
    assert agent is not None
    assert (agent.scopes, agent.status) == (("calendar:read",), "suspended")
    assert agents.grant_of(FILED) is None


async def test_the_state_of_an_agent_in_a_file_is_kept_in_the_store(store: Store) -> None:
    await store.do(suspend(FILED, name="lobby", assumed="active"))
    agents = filed()
    await agents.follow(store)
    agent = agents.get(FILED)
    assert agent is not None
    assert (agent.status, agent.scopes) == ("suspended", ("booking:*",))
    # The file may go; what became of the agent stays.
    without = Agents()
    await without.follow(store)
    left = without.get(FILED)
    assert left is not None
    assert (left.status, left.scopes) == ("suspended", ())


async def test_changes_are_taken_in_as_they_happen(store: Store) -> None:
    agents = filed()
    await agents.follow(store)
    assert agents.get(STORED) is None
    seen = agents.revision
    await store.do(put())
    await changed(agents, seen)
    assert agents.get(STORED) is not None
    seen = agents.revision
    await store.do(suspend(STORED))
    await changed(agents, seen)
    agent = agents.get(STORED)
    assert agent is not None
    assert agent.status == "suspended"
    await agents.close()


async def test_an_unchanged_store_does_not_change_the_agents(store: Store) -> None:
    await store.do(put())
    agents = filed()
    await agents.follow(store)
    seen = agents.revision
    await agents.refresh()
    assert agents.revision == seen


async def test_many_agents_are_read_at_once(store: Store) -> None:
    await store.do(*(put(f"{number:064x}", f"agent-{number}") for number in range(40)))
    agents = Agents()
    await agents.follow(store)
    assert len(agents) == 40


async def test_a_document_that_cannot_be_read_leaves_an_agent_that_may_do_nothing(store: Store) -> None:
    await store.do(PutAgent(STORED, "desk", "active", '{"agent_id": 7}', "operator"))
    await store.do(PutAgent(FILED, "lobby", "active", put(STORED).document, "operator"))
    broken = json.dumps({"agent_id": "3" * 64, "name": "bar", "trust_tier": 9})
    await store.do(PutAgent("3" * 64, "bar", "active", broken, "operator"))
    agents = Agents()
    await agents.follow(store)
    for agent_id in (STORED, FILED, "3" * 64):
        agent = agents.get(agent_id)
        assert agent is not None
        assert (agent.status, agents.grant_of(agent_id)) == ("unreadable", None)


async def test_a_broken_file_stays_refused_in_every_state_of_the_store(store: Store) -> None:
    await store.do(suspend(FILED, name="lobby", assumed="unreadable", allowed_from=frozenset({"unreadable"})))
    lift = SetAgentStatus(FILED, "REINSTATE", frozenset({"suspended"}), "active", "operator", "")
    await store.do(lift)
    agents = Agents([Agent(agent_id=FILED, name="lobby", status="unreadable")])
    await agents.follow(store)
    agent = agents.get(FILED)
    assert agent is not None
    assert agent.status == "unreadable"


async def test_processes_that_learn_of_agents_one_by_one_or_at_once_list_them_alike(store: Store) -> None:
    early, late = filed(), filed()
    await early.follow(store)
    for number, name in (("4", "spa"), ("3", "desk"), ("5", "bar")):
        seen = early.revision
        await store.do(put(number * 64, name))
        await changed(early, seen)
    await late.follow(store)
    assert [agent.name for agent in early] == [agent.name for agent in late] == ["lobby", "bar", "desk", "spa"]
    assert early.updated == late.updated > 0.0
