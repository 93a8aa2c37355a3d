"""Queues for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.contract.participant import JoinedFunction, Participant, QueueOptions


def nothing() -> None:
    """Do nothing."""


def queue_of(
    function: Callable[..., Any] = nothing,
    name: str = "invoices",
    *,
    concurrency: int = 4,
    retries: int = 0,
    lease: float = 60.0,
    scopes: tuple[str, ...] = (),
) -> Participant:
    """Return a queue whose items a function works on."""
    return Participant(
        kind="queue",
        name=name,
        functions={"run": JoinedFunction(function=function, method="SUBMIT", impact="reversible")},
        methods=("SUBMIT", "CHECK", "CANCEL"),
        options=QueueOptions(concurrency=concurrency, retries=retries, lease=lease, scopes=scopes),
    )


async def submitted(bench: StatefulBench, queue: str = "invoices", agent: str = AGENT, **payload: Any) -> str:
    """Submit an item and return its tracking id."""
    reply = await bench.send("SUBMIT", "/", {"target": queue, "payload": payload}, agent=agent)
    assert reply.status == 200, reply.json
    tracking_id: str = reply.json["result"]["tracking_id"]
    return tracking_id


async def ended(bench: StatefulBench, tracking_id: str, *states: str, agent: str = AGENT) -> dict[str, Any]:
    """Return what CHECK tells of an item when it is in one of the states; `done` or `dead` by default."""
    async with asyncio.timeout(20):
        while True:
            reply = await bench.send("CHECK", "/", {"target": tracking_id}, agent=agent)
            assert reply.status == 200, reply.json
            found: dict[str, Any] = reply.json["result"]
            if found["status"] in (states or ("done", "dead")):
                return found
            await asyncio.sleep(0.005)
