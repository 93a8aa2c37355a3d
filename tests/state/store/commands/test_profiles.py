"""Profiles of tasks, on every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bespeak.state.store.commands.semantics import (
    FindProfile,
    RecordedProfile,
    RecordProfile,
    ReplaceProfile,
    UseProfile,
    profile_record,
    task_record,
)
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store

pytestmark = pytest.mark.anyio

TASK = task_record("a" * 64, "t-1038")


async def do(store: Store, command: Command) -> Any:
    done = await store.do(command)
    assert not isinstance(done, Conflict)
    return done[0]


class Expire(Command, frozen=True):
    """Let every record expire."""

    def steps(self) -> Steps:
        yield Statement("UPDATE records SET expires = {now} - 1")


async def test_first_profile_of_a_task_stays(store: Store) -> None:
    assert (await do(store, FindProfile(TASK))).digest == ""
    first = await do(store, RecordProfile(TASK, "a", "d1", {"n": 1}))
    assert first == RecordedProfile("d1", {"n": 1}, "a", 1)
    assert await do(store, RecordProfile(TASK, "a", "d2", {"n": 2})) == first
    assert await store.read(FindProfile(TASK)) == first


async def test_renegotiated_profile_replaces_it(store: Store) -> None:
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    assert await do(store, ReplaceProfile(TASK, "a", "d2", {"n": 2})) == RecordedProfile("d2", {"n": 2}, "a", 2)
    assert (await do(store, RecordProfile(TASK, "a", "d1", {}))).digest == "d2"
    other = task_record("a", "t-2")
    assert await do(store, ReplaceProfile(other, "a", "d1", {})) == RecordedProfile("d1", {}, "a", 1)


class Shorten(Command, frozen=True):
    """Let every record expire in a minute."""

    def steps(self) -> Steps:
        yield Statement("UPDATE records SET expires = {now} + 60")


class Remaining(Command, frozen=True):
    """Tell how many seconds a record is still kept."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT expires - {now} FROM records")
        return rows[0][0]


async def test_profile_that_calls_use_is_kept_longer(store: Store) -> None:
    assert (await do(store, UseProfile(TASK))).digest == ""
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    await do(store, Shorten())
    assert (await do(store, FindProfile(TASK))).digest == "d1"
    assert await store.read(Remaining()) < 61
    assert (await do(store, UseProfile(TASK))).digest == "d1"
    assert await store.read(Remaining()) > 86400


async def test_expired_profile_gives_way(store: Store) -> None:
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    await do(store, Expire())
    assert (await do(store, RecordProfile(TASK, "a", "d2", {}))).digest == "d2"
    await do(store, Expire())
    assert (await do(store, ReplaceProfile(TASK, "a", "d3", {}))).digest == "d3"


async def test_calls_that_begin_a_task_at_once_agree_on_one_profile(first: Store, second: Store) -> None:
    found = await asyncio.gather(
        *(do(store, RecordProfile(TASK, "a", f"d{n}", {})) for n, store in enumerate([first, second] * 3))
    )
    assert len({one.digest for one in found}) == 1


def test_agents_cannot_guess_the_tasks_of_others() -> None:
    ids = {task_record("a", "b"), task_record("ab", ""), task_record("b", "a"), profile_record("a", "b")}
    assert len(ids) == 4
