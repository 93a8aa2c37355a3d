"""Worker processes of one server: an endpoint that one of them adds is served by all of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process import Served, serving

from bespeak.agent.client.agtp_transport import Pool

pytestmark = [pytest.mark.process, pytest.mark.anyio]

APP = '''
import os

from bespeak import App, Policies
from bespeak.runtime.server import Server

open_to_all = Policies(scope_required_for_invocation=False)
app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example", policies=open_to_all)
later = App("Pools", server_id="pools.example", operator="Acme", contact="ops@acme.example", policies=open_to_all)
servers = []
start = Server.start


async def start_and_keep(server):
    servers.append(server)
    await start(server)


Server.start = start_and_keep


@app.endpoint("FETCH", "/worker", impact="informational")
def worker() -> dict[str, int]:
    """Fetch the id of the process that answers.

    Outcome: The id is returned.
    """
    return {"pid": os.getpid()}


@app.endpoint("RUN", "/addition", impact="reversible")
async def add() -> dict[str, int]:
    """Run the addition of an endpoint.

    Outcome: The endpoint is served.
    """
    await servers[0].add_endpoint(later.service().endpoints[0])
    return {"pid": os.getpid()}


@app.endpoint("RUN", "/removal", impact="reversible")
async def remove() -> dict[str, int]:
    """Run the removal of the endpoint.

    Outcome: The endpoint is no longer served.
    """
    await servers[0].remove_endpoint("FIND", "/pools/{pool}")
    return {"pid": os.getpid()}


@later.endpoint("FIND", "/pools/{pool}", impact="informational")
def find(pool: str) -> dict[str, str]:
    """Find a pool.

    Outcome: The pool is returned.
    """
    return {"pool": pool}
'''
WEB = ("/", "/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt")
EVERYWHERE = {"AGTP", "HTTP", "manifest", "methods", *WEB}


class Worker:
    """One worker process, asked on a connection of each face that it has accepted."""

    def __init__(self, agtp: Pool, http: httpx.AsyncClient) -> None:
        self._agtp = agtp
        self._http = http

    async def call(self, method: str, path: str) -> tuple[int, Any]:
        """Call an endpoint over AGTP."""
        response = await self._agtp.request(method, path, (), b"")
        return response.status, json.loads(response.body)

    async def get(self, path: str) -> httpx.Response:
        """Send a request over HTTP."""
        return await self._http.get(path)

    async def pids(self) -> set[int]:
        """Return the processes that answer on the two connections."""
        return {(await self.call("FETCH", "/worker"))[1]["pid"], (await self.get("/worker:fetch")).json()["pid"]}

    async def places(self) -> set[str]:
        """Return the faces and documents that have the endpoint."""
        seen = {
            "AGTP": (await self.call("FIND", "/pools/3"))[0] == 200,
            "HTTP": (await self.get("/pools/3:find")).status_code == 200,
            "manifest": "/pools" in json.dumps((await self.call("DISCOVER", "/"))[1]),
            "methods": "/pools" in json.dumps((await self.call("DISCOVER", "/methods"))[1]),
            **{path: ("FIND" if "agis" in path else "/pools") in (await self.get(path)).text for path in WEB},
        }
        return {place for place, has_it in seen.items() if has_it}


@asynccontextmanager
async def two_workers(served: Served) -> AsyncIterator[tuple[Worker, Worker]]:
    """Connect to both workers: the system chooses one for each connection, so connect until both have answered."""
    async with AsyncExitStack() as opened:
        agtp: dict[int, Pool] = {}
        http: dict[int, httpx.AsyncClient] = {}

        async def connect() -> bool:
            pool = Pool("127.0.0.1", served.port, size=1)
            opened.push_async_callback(pool.close)
            client = await opened.enter_async_context(httpx.AsyncClient(base_url=served.url, timeout=20))
            one = Worker(pool, client)
            agtp[(await one.call("FETCH", "/worker"))[1]["pid"]] = pool
            http[(await one.get("/worker:fetch")).json()["pid"]] = client
            return len(agtp) == len(http) == 2

        await eventually(connect)
        assert agtp.keys() == http.keys()
        first, second = (Worker(agtp[pid], http[pid]) for pid in agtp)
        yield first, second
        assert [await worker.pids() for worker in (first, second)] == [{pid} for pid in agtp]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_an_endpoint_added_by_one_worker_is_served_by_the_other_until_one_removes_it(tmp_path: Path) -> None:
    (tmp_path / "rooms.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "rooms:app"\n')
    with serving(tmp_path, "--http", "127.0.0.1:0", "--workers", "2") as served:
        async with two_workers(served) as (first, second):

            async def second_has_it() -> bool:
                return await second.places() == EVERYWHERE

            async def first_lost_it() -> bool:
                return await first.places() == set()

            assert [await first.places(), await second.places()] == [set(), set()]
            assert (await first.call("RUN", "/addition"))[0] == 200
            assert await first.places() == EVERYWHERE
            await eventually(second_has_it)
            assert (await second.call("FIND", "/pools/3"))[1] == {"pool": "3"}
            assert (await second.get("/pools/3:find")).json() == {"pool": "3"}
            assert (await second.call("RUN", "/removal"))[0] == 200
            assert await second.places() == set()
            await eventually(first_lost_it)
        assert served.stop() == 0
