"""How many items per second can be submitted to a queue, and then drained from it, on SQLite, in one process?

Run it alone: `python bench/queues.py [ITEMS]`. It prints rates, and the CPU time of an item that is submitted and of
one that is done. The goal is 100,000 items drained at 3,000/s: 333 µs of one core.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

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


@app.queue("invoices", concurrency=AT_ONCE)
async def bill(order: int) -> dict[str, int]:
    """Write an invoice."""
    global done  # noqa: PLW0603 - what the bench counts
    await filled.wait()
    done += 1
    return {"invoice": order}


async def measure(items: int, place: str) -> None:
    store = open_store(place, role="sole")
    keeper = Keeper(assemble(app.service()), store, ServerDocument())
    connection, headers = Connection(address="127.0.0.1"), {"agent-id": AGENT}
    await keeper.start()
    try:
        cpu, began = time.process_time(), time.perf_counter()
        left = iter(range(items))

        async def submit() -> None:
            for order in left:
                body = msgspec.json.encode({"target": "invoices", "payload": {"order": order}})
                answer = keeper.dispatcher(Request("SUBMIT", "/", "", headers, body, connection))
                response = await answer if asyncio.iscoroutine(answer) else answer
                assert response.status == 200, response.body

        await asyncio.gather(*(submit() for _ in range(AT_ONCE)))
        _tell("submitted", items, began, cpu)
        cpu, began = time.process_time(), time.perf_counter()
        filled.set()
        while done < items:
            await asyncio.sleep(0.01)
        _tell("drained", items, began, cpu)
    finally:
        await keeper.stop()


def _tell(what: str, items: int, began: float, cpu: float) -> None:
    rate, spent = items / (time.perf_counter() - began), (time.process_time() - cpu) / items * 1e6
    print(f"{items:,} items {what} at {rate:,.0f}/s; {spent:.0f} µs CPU each, at most {1e6 / spent:,.0f}/s on one core")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, str(Path(folder) / "bench.db")))
