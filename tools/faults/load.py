"""Clients that keep a server busy, each with one request in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools.faults.deployment import AGENT
from tools.faults.ledger import Ledger, Order

from bespeak.agent.client.agtp_transport import Pool
from bespeak.errors import RemoteProtocolError

LONGEST = 20.0
"""Timeout of a client in seconds; no response within it is a fault of the server."""
_PAUSE = 0.01


async def send(pool: Pool, ledger: Ledger, order: Order) -> int | None:
    """Send an order once; return the status of the response, or None if there was none."""
    request_id = ledger.request_id(order)
    headers = {
        "Agent-ID": AGENT,
        "Idempotency-Key": order.key,
        "Request-ID": request_id,
        "Content-Type": "application/json",
        **dict(order.headers),
    }
    begun, known = time.monotonic(), order.answer is not None
    try:
        response = await pool.request(order.method, order.path, tuple(headers.items()), order.body)
    except TimeoutError:
        ledger.faults.append(f"{request_id} got no answer within {LONGEST:g} seconds")
        return None
    except (OSError, RemoteProtocolError):
        ledger.counts["broken off"] += 1
        return None
    ledger.slowest = max(ledger.slowest, time.monotonic() - begun)
    ledger.note(order, request_id, response, known=known)
    return response.status


@asynccontextmanager
async def load(ledger: Ledger, port: int, clients: int, host: str = "127.0.0.1") -> AsyncIterator[None]:
    """Keep a server busy inside the block, and wait for requests in flight at its end."""
    pool = Pool(host, port, size=clients, read_timeout=LONGEST)
    stop = asyncio.Event()

    async def client() -> None:
        while not stop.is_set():
            status = await send(pool, ledger, ledger.choose())
            if status not in (200, 202):  # it is down or busy with this very key; asking faster helps nobody
                await asyncio.sleep(_PAUSE)

    tasks = [asyncio.ensure_future(client()) for _ in range(clients)]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
        await pool.close()


async def ask_until_answered(ledger: Ledger, pool: Pool, order: Order, deadline: float) -> None:
    """Send an order until it is acknowledged, or record that it never was."""
    while (status := await send(pool, ledger, order)) not in (200, 202):
        if status not in (None, 409, 503):
            return  # noted, and no better the next time
        if time.monotonic() > deadline:
            ledger.faults.append(f"{order.key} was never answered")
            return
        await asyncio.sleep(_PAUSE)
