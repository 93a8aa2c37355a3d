"""How many items per second can be submitted to a queue and drained from it, on SQLite, in one process?

Run it alone: `python bench/queues.py [ITEMS]`. It prints rates and the CPU time of one item, submitted and done.
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


@app.queue("invoices", concurrency=AT_ONCE)
async def bill(order: int) -> dict[str, int]:
    """Write an invoice."""
    global done  # noqa: PLW0603 - what the bench counts
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
        submitted, left_over = time.perf_counter() - began, items - done
        while done < items:
            await asyncio.sleep(0.01)
        drained = time.perf_counter() - began
        spent = (time.process_time() - cpu) / items * 1e6
        print(f"{items:,} items: submitted at {items / submitted:,.0f}/s while others were done; all done at", end=" ")
        print(f"{items / drained:,.0f}/s; {left_over:,} were left when the last was submitted; {spent:.0f} µs CPU each")
    finally:
        await keeper.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, str(Path(folder) / "bench.db")))
