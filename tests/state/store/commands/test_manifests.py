"""When a manifest was first issued, on every driver."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.state.store.commands.endpoints import IssueManifest, ReadRevision, UpdateManifest
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_first_time_of_a_server_stays(store: Store) -> None:
    assert await store.do(IssueManifest("a.example", 5.0)) == [5.0]
    assert await store.do(IssueManifest("a.example", 9.0)) == [5.0]
    assert await store.do(IssueManifest("b.example", 9.0)) == [9.0]
    assert await store.read(ReadRevision()) == 0


async def test_processes_that_start_at_once_agree(store: Store) -> None:
    done = await asyncio.gather(*(store.do(IssueManifest("a.example", float(at))) for at in range(1, 6)))
    assert len({tuple(times) for times in done if isinstance(times, list)}) == 1


async def test_the_time_of_a_content_stays_until_another_one_is_published(store: Store) -> None:
    assert await store.do(UpdateManifest("a.example", 1, 5.0)) == [5.0]
    assert await store.do(UpdateManifest("a.example", 1, 9.0)) == [5.0]
    assert await store.do(UpdateManifest("a.example", 2, 9.0)) == [9.0]
    assert await store.do(UpdateManifest("a.example", 1, 10.0)) == [10.0]
    assert await store.do(UpdateManifest("b.example", 1, 7.0)) == [7.0]
