"""Agents in the store: documents are replaced, states change by the rules, retired is for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.state.store.single import only
from tests.stateful import ReadDelegation

from bespeak.state.store.commands.agents import (
    TOPIC,
    AgentMark,
    ListAgents,
    MarkAgents,
    PutAgent,
    ReadAgent,
    ReadLifecycle,
    RecordDelegation,
    SetAgentStatus,
    Transition,
)
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

ID = "1" * 64
OTHER = "2" * 64


def put(agent_id: str = ID, name: str = "desk", document: str = "{}", status: str = "active") -> PutAgent:
    return PutAgent(agent_id, name, status, document, "operator")


def change(event: str, status: str, *allowed: str, **fields: Any) -> SetAgentStatus:
    return SetAgentStatus(ID, event, frozenset(allowed), status, "operator", "because", **fields)


async def test_agent_is_read_back_unchanged(store: Store) -> None:
    assert await only(store, put(document='{"a": 1}')) == "active"
    row = await store.read(ReadAgent(ID))
    assert (row.name, row.status, row.document, row.revision) == ("desk", "active", '{"a": 1}', 1)
    assert await store.read(ReadAgent(OTHER)) is None
    assert await store.read(ListAgents()) == [row]


async def test_a_new_document_does_not_lift_a_suspension(store: Store) -> None:
    await store.do(put())
    await store.do(change("DEACTIVATE", "suspended", "active"))
    assert await only(store, put(document='{"a": 2}')) == "suspended"
    row = await store.read(ReadAgent(ID))
    assert (row.status, row.document) == ("suspended", '{"a": 2}')
    assert await store.read(MarkAgents()) == [AgentMark(ID, "suspended", 3)]


async def test_every_change_is_stored_with_actor_and_reason(store: Store) -> None:
    await store.do(put(status="pending"))
    await store.do(change("ACTIVATE", "active", "pending"))
    events = await store.read(ReadLifecycle(ID))
    assert [(one.event, one.previous_status, one.status, one.actor, one.reason) for one in events] == [
        ("REGISTER", "", "pending", "operator", ""),
        ("ACTIVATE", "pending", "active", "operator", "because"),
    ]
    assert 0 < events[0].at <= events[1].at
    assert [one.event for one in await store.read(ReadLifecycle(ID, limit=1))] == ["ACTIVATE"]


async def test_setting_the_current_state_changes_nothing(store: Store) -> None:
    await store.do(put())
    assert await only(store, change("ACTIVATE", "active", "pending")) == Transition("active", "active", noop=True)
    assert len(await store.read(ReadLifecycle(ID))) == 1


@pytest.mark.requirement("CORE-7.1-3")
async def test_a_retired_agent_stays_retired_and_is_not_added_again(store: Store) -> None:
    await store.do(put())
    assert await only(store, change("REVOKE", "retired", "active")) == Transition("active", "retired")
    back = await only(store, change("REINSTATE", "active", "suspended"))
    assert back == Conflict("transition-impossible", {"status": "retired"})
    assert await only(store, put()) == Conflict("agent-retired", {"agent_id": ID})
    assert (await store.read(ReadAgent(ID))).status == "retired"


@pytest.mark.requirement("CORE-7.4-8")
async def test_name_belongs_to_one_agent_and_stays_reserved_afterwards(store: Store) -> None:
    await store.do(put())
    assert await only(store, put(OTHER)) == Conflict("name-taken", {"agent_id": ID})
    await store.do(change("REVOKE", "retired", "active"))
    assert await only(store, put(OTHER)) == Conflict("name-taken", {"agent_id": ID})
    assert await only(store, put(OTHER, "lobby")) == "active"


class Age(Command, frozen=True):
    """As if an agent had last been changed so many seconds earlier."""

    agent_id: str
    seconds: float

    def steps(self) -> Steps:
        yield Statement("UPDATE agents SET updated = updated - ? WHERE agent_id = ?", (self.seconds, self.agent_id))


@pytest.mark.requirement("CORE-7.4-8")
async def test_name_is_free_ninety_days_after_its_agent_retired(store: Store) -> None:
    days = 86400.0
    await store.do(put(), change("REVOKE", "retired", "active"))
    await store.do(Age(ID, 89 * days))
    assert await only(store, put(OTHER)) == Conflict("name-taken", {"agent_id": ID})
    await store.do(Age(ID, 2 * days))
    assert await only(store, put(OTHER)) == "active"
    assert await only(store, put()) == Conflict("agent-retired", {"agent_id": ID})


async def test_state_of_an_agent_from_a_file_is_stored_without_its_document(store: Store) -> None:
    assert await only(store, change("DEACTIVATE", "suspended", "active")) == Conflict("agent-unknown", {"agent_id": ID})
    changed = change("DEACTIVATE", "suspended", "active", name="desk", assumed="active")
    assert await only(store, changed) == Transition("active", "suspended")
    row = await store.read(ReadAgent(ID))
    assert (row.name, row.status, row.document) == ("desk", "suspended", None)


async def test_watchers_are_notified_of_changes(store: Store) -> None:
    told = asyncio.Event()
    store.watch(TOPIC, told.set)
    for command in (put(), change("REVOKE", "retired", "active")):
        await store.do(command)
        await asyncio.wait_for(told.wait(), 20)
        told.clear()


async def test_concurrent_changes_of_a_state_are_serialized(first: Store, second: Store) -> None:
    await first.do(put())
    down = change("DEACTIVATE", "suspended", "active")
    gone = change("REVOKE", "retired", "active", "suspended")
    done = await asyncio.gather(first.do(down), second.do(gone), first.do(down), second.do(gone))
    assert (await first.read(ReadAgent(ID))).status == "retired"
    changes = [one[0] for one in done if not isinstance(one, Conflict)]
    events = await second.read(ReadLifecycle(ID))
    assert len(events) == 1 + sum(not one.noop for one in changes)
    assert [one.previous_status for one in events[1:]] == [one.status for one in events[:-1]]


async def test_concurrent_changes_of_an_agent_from_a_file_are_serialized(first: Store, second: Store) -> None:
    down = change("DEACTIVATE", "suspended", "active", name="desk", assumed="active")
    done = await asyncio.gather(first.do(down), second.do(down), first.do(down), second.do(down))
    assert (await first.read(ReadAgent(ID))).status == "suspended"
    assert not any(isinstance(one, Conflict) for one in done)
    made = [one for one in done if not isinstance(one, Conflict) and not one[0].noop]
    assert len(made) == len(await first.read(ReadLifecycle(ID))) == 1


A, B, C = ("a" * 64, "b" * 64, "c" * 64)


FIRST = RecordDelegation("d1", A, B, "booking:room, calendar:read", None, "book", 2e9)
SECOND = RecordDelegation("d2", B, C, "booking:room", "d1", None, 1.9e9)


@pytest.mark.requirement("CORE-7.6-4")
async def test_a_hop_leads_to_the_one_before(store: Store) -> None:
    assert await store.do(FIRST, SECOND) == [True, True]
    last = await store.read(ReadDelegation("d2"))
    assert (last.delegator, last.delegate, last.scope) == (B, C, "booking:room")
    found = await store.read(ReadDelegation(last.parent))
    assert (found.delegate, found.task, found.parent, found.expires) == (B, "book", None, 2e9)


async def test_an_id_is_used_once(store: Store) -> None:
    await store.do(FIRST)
    again = RecordDelegation("d1", C, A, "x:y", None, None, 2e9)
    assert await store.do(again) == Conflict("delegation-known", {"delegation_id": "d1"})
    assert (await store.read(ReadDelegation("d1"))).delegator == A
    assert await store.read(ReadDelegation("none")) is None


async def test_delegations_that_ended_long_ago_are_purged(store: Store) -> None:
    await store.do(FIRST, RecordDelegation("old", A, B, "x:y", None, None, 1000.0))
    assert await store.do(PurgeExpired(kept=60.0)) == [1]
    assert await store.read(ReadDelegation("old")) is None
    assert await store.read(ReadDelegation("d1")) is not None
