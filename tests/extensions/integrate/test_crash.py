"""A server that is killed while it synchronizes and moves rows: both go on, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.acquire.test_collections import put
from tests.process import Served, serving
from tests.service import AGENT
from tests.stateful import do_at, keeping

import bespeak
from bespeak.extensions.acquire.store import ListResources
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.wire.messages import Malformed
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.store.commands.records import ChangeRecord
from bespeak.state.store.settings import open_store

pytestmark = [pytest.mark.process, pytest.mark.anyio]
PLANT = """
[server]
server_id = "plant.example"
operator = "Acme"
contact = "ops@plant.example"
[policies]
scope_required_for_invocation = false
[methods]
enable = ["CONNECT", "SYNC", "IMPORT", "SCAN", "CHECK"]
[connect.remotes.warehouse]
url = "{uri}"
scope = "stock:read"
scopes = []
"""
FEED, STOCK = 250, 1000
QUICK = {"rate": 50, "interval": 1}


class Holding:
    """A remote that leaves one page without an answer."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.pages = 0
        self.held = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.pages += request.method == "SCAN"
        if self.pages == 6 and not self.held.is_set():
            self.held.set()
            await asyncio.Event().wait()
        answer = self._dispatcher(request)
        return answer if isinstance(answer, Response) else await answer

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        return self._dispatcher.malformed(fault, connection)


async def call(served: Served, method: str, **body: Any) -> dict[str, Any]:
    async with bespeak.connect(served.uri, retry=None) as service:
        answer = await service.request(method, "/", body, headers={"Agent-ID": AGENT})
        result: dict[str, Any] = answer.json()["result"]
        return result


async def until(served: Served, target: str, name: str, least: int) -> None:
    async with asyncio.timeout(60):
        while (await call(served, "CHECK", target=target))["details"].get(name, 0) < least:
            await asyncio.sleep(0.05)


async def test_a_killed_server_goes_on_with_its_connections_and_synchronizations(tmp_path: Path) -> None:
    path = tmp_path / "plant.db"
    store = open_store(str(path), role="sole")
    await store.start()
    await put(store, *({"id": f"f{n}"} for n in range(FEED)), collection="feed")
    await store.close()
    async with keeping(methods=("SCAN", "IMPORT")) as there:
        await put(there.store, *({"id": f"r{n}"} for n in range(STOCK)), collection="stock", owner=AGENT)
        remote = Holding(there.bench.dispatcher)
        server = AgtpServer(remote)
        [(_, port)] = await server.start("127.0.0.1", 0)
        (tmp_path / "bespeak.toml").write_text(PLANT.format(uri=f"agtp://127.0.0.1:{port}"))
        try:
            with serving(tmp_path, "--store", str(path)) as served:
                ends = {"source": "collection:feed", "destination": "collection:copies"}
                connection = (await call(served, "CONNECT", **ends, config=QUICK))["connection_id"]
                job = (await call(served, "SYNC", resource="stock", remote="warehouse"))["job_id"]
                await asyncio.wait_for(remote.held.wait(), 60)
                await until(served, connection, "moved", 100)
                await asyncio.to_thread(served.stop, signal.SIGKILL)
            # As if the leases had ended.
            for kind, record_id, states in (("connection", connection, "active"), ("job", job, "running")):
                change = ChangeRecord(record_id, (kind,), (states,), states, delay=0.0)
                await asyncio.to_thread(do_at, path, change)
            with serving(tmp_path, "--store", str(path)) as served:
                await until(served, connection, "moved", FEED)
                async with asyncio.timeout(60):
                    while (found := await call(served, "CHECK", target=job))["status"] != "done":
                        await asyncio.sleep(0.05)
                assert found["details"]["result"]["pulled"] == STOCK
                await asyncio.to_thread(served.stop)
        finally:
            await server.close()
    store = open_store(str(path), role="sole")
    await store.start()
    try:
        for collection, count in (("copies", FEED), ("stock", STOCK)):
            rows = await store.read(ListResources(collection, (AGENT,), 0, 5000))
            assert len(rows) == len({row.data for row in rows}) == count, collection
            assert {row.version for row in rows} == {1}
    finally:
        await store.close()
