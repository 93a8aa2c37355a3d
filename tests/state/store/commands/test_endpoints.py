"""Endpoints added at run time, on every driver."""

from __future__ import annotations

import asyncio
import time

import pytest

from bespeak.state.store.commands.endpoints import (
    TOPIC,
    DropEndpoint,
    EndpointList,
    EndpointRow,
    IssueManifest,
    ListEndpoints,
    PutEndpoint,
    ReadRevision,
    UpdateManifest,
)
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio


async def test_a_store_without_endpoints_is_at_revision_0(store: Store) -> None:
    assert await store.read(ReadRevision()) == 0
    assert await store.read(ListEndpoints()) == EndpointList()


async def test_endpoints_are_listed_in_the_order_of_addition(store: Store) -> None:
    assert await store.do(PutEndpoint("BOOK", "/b", "{}", 0)) == [1]
    assert await store.do(PutEndpoint("BOOK", "/a", '{"a":1}', 1)) == [2]
    listed = await store.read(ListEndpoints())
    assert listed.rows == (EndpointRow("BOOK", "/b", "{}", 1), EndpointRow("BOOK", "/a", '{"a":1}', 2))
    assert (listed.revision, await store.read(ReadRevision())) == (2, 2)
    assert listed.updated == pytest.approx(time.time(), abs=60)


async def test_endpoint_that_is_removed_and_added_again_has_a_new_revision(store: Store) -> None:
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    assert await store.do(DropEndpoint("BOOK", "/a", 1)) == [2]
    listed = await store.read(ListEndpoints())
    assert (listed.revision, listed.rows) == (2, ())
    assert await store.do(PutEndpoint("BOOK", "/a", "{}", 2)) == [3]
    assert (await store.read(ListEndpoints())).rows == (EndpointRow("BOOK", "/a", "{}", 3),)


async def test_same_method_and_path_is_replaced(store: Store) -> None:
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await store.do(PutEndpoint("BOOK", "/a", '{"b":2}', 1))
    assert (await store.read(ListEndpoints())).rows == (EndpointRow("BOOK", "/a", '{"b":2}', 2),)


@pytest.mark.parametrize("based_on", [0, 2])
async def test_a_change_based_on_another_revision_changes_nothing(store: Store, based_on: int) -> None:
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    for command in (PutEndpoint("BOOK", "/b", "{}", based_on), DropEndpoint("BOOK", "/a", based_on)):
        assert await store.do(command) == Conflict("changed")
    listed = await store.read(ListEndpoints())
    assert (listed.revision, [row.path for row in listed.rows]) == (1, ["/a"])


async def test_one_of_many_concurrent_changes_in_two_processes_succeeds(first: Store, second: Store) -> None:
    for revision in range(3):
        changes = [
            process.do(PutEndpoint("BOOK", f"/{number}", "{}", revision))
            for number, process in enumerate((first, second) * 4)
        ]
        results = await asyncio.gather(*changes)
        assert (results.count([revision + 1]), results.count(Conflict("changed"))) == (1, 7)


async def test_other_process_is_notified_of_changes(first: Store, second: Store) -> None:
    told = asyncio.Event()
    second.watch(TOPIC, told.set)
    await first.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(told.wait(), 20)
    assert await second.read(ReadRevision()) == 1


async def test_first_time_of_a_server_stays_and_the_time_of_a_content_until_another_one(store: Store) -> None:
    assert await store.do(IssueManifest("a.example", 5.0)) == [5.0]
    assert await store.do(IssueManifest("a.example", 9.0)) == [5.0]
    assert await store.do(IssueManifest("b.example", 9.0)) == [9.0]
    assert await store.read(ReadRevision()) == 0
    assert await store.do(UpdateManifest("a.example", 1, 5.0)) == [5.0]
    assert await store.do(UpdateManifest("a.example", 1, 9.0)) == [5.0]
    assert await store.do(UpdateManifest("a.example", 2, 9.0)) == [9.0]
    assert await store.do(UpdateManifest("a.example", 1, 10.0)) == [10.0]
    assert await store.do(UpdateManifest("b.example", 1, 7.0)) == [7.0]


async def test_processes_that_start_at_once_agree(store: Store) -> None:
    done = await asyncio.gather(*(store.do(IssueManifest("a.example", float(at))) for at in range(1, 6)))
    assert len({tuple(times) for times in done if isinstance(times, list)}) == 1
