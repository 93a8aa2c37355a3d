"""A server is started on demand, once for all callers, and after failures only when its waiting time is over."""

from __future__ import annotations

import asyncio

import pytest
from tests.runtime.bindings.mcp.servers import crooked, launched

from bespeak.contract.handler import McpServer
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.launch import McpFailure
from bespeak.runtime.bindings.mcp.tool import McpPool, McpUpstream

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def upstream(pool: McpPool, server: McpServer) -> McpUpstream:
    return pool.upstream(server.key, launched(server))


async def opened(upstream: McpUpstream) -> McpConnection:
    found = await upstream.connection()
    assert isinstance(found, McpConnection)
    return found


async def test_callers_share_one_start_and_one_process() -> None:
    pool = McpPool()
    servers = [crooked(tool="add"), crooked(tool="json")]
    assert upstream(pool, servers[0]) is upstream(pool, servers[1])
    first, second = await asyncio.gather(*(opened(upstream(pool, server)) for server in servers))
    assert first is second
    await pool.aclose()
    assert not first.is_open


async def test_start_goes_on_when_the_caller_who_began_it_has_left() -> None:
    pool = McpPool()
    known = upstream(pool, crooked())
    impatient = asyncio.create_task(known.connection())
    patient = asyncio.create_task(opened(known))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).is_open
    await pool.aclose()


async def test_server_that_ended_is_started_again_at_once_the_first_time() -> None:
    pool = McpPool(Clock())
    known = upstream(pool, crooked())
    before = await opened(known)
    await before.call("crash", {})
    after = await opened(known)
    assert after is not before
    assert after.is_open
    await pool.aclose()


async def test_repeated_failures_wait_longer_each_time_until_a_call_succeeds() -> None:
    clock = Clock()
    pool = McpPool(clock)
    known = upstream(pool, McpServer(tool="", command="surely-not-installed"))

    async def fail() -> McpFailure:
        found = await known.connection()
        assert isinstance(found, McpFailure)
        return found

    assert (await fail()).retry_after is None
    assert (await fail()).retry_after is None
    waits = []
    for _ in range(8):
        waits.append((await fail()).retry_after)
        clock.now += waits[-1] or 0
        assert (await fail()).retry_after is None
    assert waits == [1, 1, 2, 4, 8, 16, 30, 30]
    known.succeed()
    clock.now += 30
    await fail()
    assert (await fail()).retry_after is None


async def test_closing_ends_a_start_that_is_under_way() -> None:
    pool = McpPool()
    known = upstream(pool, crooked("silent"))
    waiting = asyncio.create_task(known.connection())
    await asyncio.sleep(0)
    await pool.aclose()
    assert (await asyncio.wait({waiting}))[0]
    assert waiting.cancelled()
