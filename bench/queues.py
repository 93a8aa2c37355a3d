"""How many items per second can be submitted to a queue, and then drained from it, on SQLite, in one process?

Run it alone: `python bench/queues.py [ITEMS]`. It prints rates, and the CPU time of an item that is submitted and of
one that is done. The goal is 100,000 items drained at 3,000/s: 333 µs of one core. Items that agents PULL and
acknowledge should be 20,000/s in tens, and 5,000/s one by one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from bespeak import App
from bespeak.app.server.assembly import Keeper, assemble
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.state.store.settings import open_store

AGENT: Final = "a" * 64
AT_ONCE: Final = 32

app = App("Bench", server_id="bench.example", operator="Bench", contact="ops@bench.example")
done = 0
filled = asyncio.Event()


class Order(msgspec.Struct):
    order: int


@app.queue("invoices", concurrency=AT_ONCE)
async def bill(order: int) -> dict[str, int]:
    """Write an invoice."""
    global done  # noqa: PLW0603 - what the bench counts
    await filled.wait()
    done += 1
    return {"invoice": order}


app.queue("orders", model=Order)


class Client:
    """Sends calls of one agent to a service in this process."""

    def __init__(self, keeper: Keeper) -> None:
        self._dispatcher = keeper.dispatcher
        self._connection = Connection(address="127.0.0.1")
        self._headers = {"agent-id": AGENT, "authority-scope": "orders:pull"}

    async def send(self, method: str, body: dict[str, Any]) -> Any:
        request = Request(method, "/", "", self._headers, msgspec.json.encode(body), self._connection)
        answer = self._dispatcher(request)
        response = await answer if asyncio.iscoroutine(answer) else answer
        assert response.status == 200, response.body
        return msgspec.json.decode(response.body)["result"]

    async def submit(self, items: int, queue: str) -> None:
        left = iter(range(items))

        async def submit() -> None:
            for order in left:
                await self.send("SUBMIT", {"target": queue, "payload": {"order": order}})

        await asyncio.gather(*(submit() for _ in range(AT_ONCE)))

    async def pull(self, size: int) -> int:
        """Pull and acknowledge until the queue is empty, with 32 workers; return the number of items."""
        pulled = 0

        async def work() -> None:
            nonlocal pulled
            held: list[dict[str, Any]] = []
            while True:
                body = {"source": "orders", "max_items": size, "acknowledge": held}
                items = (await self.send("PULL", body))["items"]
                if not items:
                    return
                pulled += len(items)
                held = [{"item_id": one["item_id"], "receipt": one["receipt"], "result": {"ok": 1}} for one in items]

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return pulled


async def measure(items: int, place: str) -> None:
    keeper = Keeper(assemble(app.service()), open_store(place, role="sole"), ServerDocument())
    client = Client(keeper)
    await keeper.start()
    try:
        cpu, began = time.process_time(), time.perf_counter()
        await client.submit(items, "invoices")
        _tell("submitted", items, began, cpu)
        cpu, began = time.process_time(), time.perf_counter()
        filled.set()
        while done < items:
            await asyncio.sleep(0.01)
        _tell("drained", items, began, cpu)
        for size in (10, 1):
            await client.submit(items, "orders")
            cpu, began = time.process_time(), time.perf_counter()
            assert await client.pull(size) == items
            _tell(f"pulled and acknowledged {size} by {size}", items, began, cpu)
    finally:
        await keeper.stop()


def _tell(what: str, items: int, began: float, cpu: float) -> None:
    rate, spent = items / (time.perf_counter() - began), (time.process_time() - cpu) / items * 1e6
    load = f"load average {os.getloadavg()[0]:.1f}"
    print(f"{items:,} items {what} at {rate:,.0f}/s; {spent:.0f} µs CPU each, at most {1e6 / spent:,.0f}/s; {load}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, str(Path(folder) / "bench.db")))
