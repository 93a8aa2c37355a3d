"""Agents that write to each other, for tests."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.protocol.exchange.instant import write_milliseconds
from bespeak.state.store.transfer import ReadTables

ANN, BOB, CAT, DAN = AGENT, "b" * 64, "c" * 64, "d" * 64
METHODS = ("REGISTER", "AUTHORIZE", "CANCEL", "PUBLISH", "ALERT", "BROADCAST", "REPLY", "MONITOR", "CHECK")


async def inbox(bench: StatefulBench, agent: str = BOB, **filters: Any) -> list[dict[str, Any]]:
    reply = await bench.send("QUERY", "/messages", filters, agent=agent)
    assert reply.status == 200, reply.json
    found: list[dict[str, Any]] = reply.json["result"]["messages"]
    return found


async def until_received(bench: StatefulBench, count: int, agent: str = BOB, **filters: Any) -> list[dict[str, Any]]:
    """Return the messages of an agent when it has received so many."""
    async with asyncio.timeout(20):
        while len(found := await inbox(bench, agent, **filters)) < count:
            await asyncio.sleep(0.01)
    return found


async def sent(bench: StatefulBench, method: str, body: dict[str, Any], agent: str = ANN) -> dict[str, Any]:
    """Send something and return its receipt."""
    reply = await bench.send(method, "/", body, agent=agent)
    assert reply.status in (200, 202), reply.json
    result: dict[str, Any] = reply.json["result"]
    return result


async def subscribe(bench: StatefulBench, *agents: str, channel: str = "news") -> list[str]:
    body = {"entity_type": "subscription", "data": {"channel": channel}}
    return [(await sent(bench, "REGISTER", body, agent))["entity_id"] for agent in agents]


async def refusal(bench: StatefulBench, method: str, body: dict[str, Any], agent: str = ANN) -> tuple[int, str]:
    """Return status and code of a refusal, which leaves the store as it was."""
    before = await contents(bench)
    reply = await bench.send(method, "/", body, agent=agent)
    assert await contents(bench) == before
    return reply.status, reply.error["code"]


async def contents(bench: StatefulBench) -> list[Any]:
    rows: list[Any] = []

    def take(table: str, page: Any) -> bool:
        if table in ("records", "outbox"):
            rows.extend(tuple(row) for row in page)
        return True

    await bench.store.read(ReadTables(take))
    return rows


def soon(seconds: float = 0.3) -> str:
    return write_milliseconds(time.time() + seconds)
