"""Paused tasks, on every driver."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.state.store.commands.cases import (
    ESCALATION,
    DecideCase,
    FindPausedTask,
    ListPausedTasks,
    OpenCase,
    PausedTask,
    PauseTask,
)
from bespeak.state.store.store import Command, Statement, Steps, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

A, B = "a" * 64, "b" * 64


def escalation(case_id: str, *agents: str, task_id: str = "t") -> OpenCase:
    pause = PauseTask(case_id, task_id, agents)
    return OpenCase(case_id, ESCALATION, A, "desk", f"digest of {case_id}", "{}", pause=pause)


def decision(case_id: str, status: str) -> DecideCase:
    return DecideCase(case_id, status, "desk", f"att-{case_id}", reason="because")


class AgeStopped(Command, frozen=True):
    """Let the retention of stopped tasks pass."""

    def steps(self) -> Steps:
        yield Statement("UPDATE paused_tasks SET expires = {now} - 1 WHERE expires < {now} + 1e10")


async def states(store: Store) -> list[tuple[str, str]]:
    listed: list[PausedTask] = await store.read(ListPausedTasks(10))
    return sorted((task.case_id, task.state) for task in listed)


async def test_a_task_is_paused_for_all_its_agents_until_the_case_is_accepted(store: Store) -> None:
    await store.do(escalation("esc-1", A, B, A))
    for agent in (A, B):
        paused = await store.read(FindPausedTask("t", ("c" * 64, agent)))
        assert paused == PausedTask(agent, "t", "esc-1", "desk", "pending", None)
    assert await store.read(FindPausedTask("t", ("c" * 64,))) is None
    assert await store.read(FindPausedTask("other", (A,))) is None
    await store.do(decision("esc-1", "deferred"))
    assert await states(store) == [("esc-1", "deferred"), ("esc-1", "deferred")]
    await store.do(decision("esc-1", "accepted"))
    assert await states(store) == []


async def test_each_case_of_a_task_has_to_be_decided(store: Store) -> None:
    await store.do(escalation("esc-1", A))
    await store.do(escalation("esc-2", A))
    await store.do(decision("esc-1", "accepted"))
    assert await states(store) == [("esc-2", "pending")]


async def test_a_rejected_task_stays_stopped_until_it_is_removed(store: Store) -> None:
    await store.do(escalation("esc-1", A))
    await store.do(escalation("esc-2", A, task_id="u"))
    await store.do(decision("esc-1", "rejected"))
    stopped: Any = await store.read(FindPausedTask("t", (A,)))
    assert (stopped.state, stopped.reason) == ("rejected", "because")
    await store.do(PurgeExpired())
    assert await states(store) == [("esc-1", "rejected"), ("esc-2", "pending")]
    await store.do(AgeStopped())
    assert await states(store) == [("esc-2", "pending")]
    assert await store.do(PurgeExpired()) == [1]
