"""Several processes serve one deployment, and what agents negotiate is the same in all of them."""

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
from anyio import to_thread
from click.testing import CliRunner
from tests.extensions.negotiation.definitions import definition, fields
from tests.process import Served, serving

from bespeak.agent.client.agtp_transport import Pool
from bespeak.extensions.negotiation.commands import proposals

pytestmark = [pytest.mark.process, pytest.mark.anyio]


APP = """
import os

from bespeak import App, Policies
from bespeak.runtime.server import Server

open_to_all = Policies()
app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example", policies=open_to_all)
later = App("Pools", server_id="pools.example", operator="Acme", contact="ops@acme.example", policies=open_to_all)
servers = []
start = Server.start


async def start_and_keep(server):
    servers.append(server)
    await start(server)


Server.start = start_and_keep


@app.endpoint("FETCH", "/worker", impact="informational",
              intent="Fetch the id of the process that answers.", outcome="The id is returned.")
def worker() -> dict[str, int]:
    return {"pid": os.getpid()}


@app.endpoint("RUN", "/addition", impact="reversible",
              intent="Run the addition of an endpoint.", outcome="The endpoint is served.")
async def add() -> dict[str, int]:
    await servers[0].add_endpoint(later.service().endpoints[0])
    return {"pid": os.getpid()}


@app.endpoint("RUN", "/removal", impact="reversible",
              intent="Run the removal of the endpoint.", outcome="The endpoint is no longer served.")
async def remove() -> dict[str, int]:
    await servers[0].remove_endpoint("FIND", "/pools/{pool}")
    return {"pid": os.getpid()}


@later.endpoint("FIND", "/pools/{pool}", impact="informational", intent="Find a pool.", outcome="The pool is returned.")
def find(pool: str) -> dict[str, str]:
    return {"pool": pool}
"""
WEB = ("/", "/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt")
EVERYWHERE = {"AGTP", "HTTP", "manifest", "methods", *WEB}


class Worker:
    """One worker process, asked on a connection of each face that it has accepted."""

    def __init__(self, agtp: Pool, http: httpx.AsyncClient) -> None:
        self._agtp = agtp
        self._http = http

    async def call(self, method: str, path: str) -> tuple[int, Any]:
        response = await self._agtp.request(method, path, (), b"")
        return response.status, json.loads(response.body)

    async def get(self, path: str) -> httpx.Response:
        return await self._http.get(path)

    async def pids(self) -> set[int]:
        return {(await self.call("FETCH", "/worker"))[1]["pid"], (await self.get("/worker:fetch")).json()["pid"]}

    async def places(self) -> set[str]:
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


AGENT, OTHER = "a" * 64, "b" * 64
SESSION = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"
NEGOTIATING_APP = """
import os
from dataclasses import dataclass

from bespeak import App, Policies

policies = Policies(synthesis_enabled=True)
app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example", policies=policies)


@dataclass
class Room:
    room_id: str
    price: float


@dataclass
class Rooms:
    rooms: list[Room]


@app.endpoint("FETCH", "/worker", impact="informational",
              intent="Fetch the id of the process that answers.", outcome="The id is returned.")
def worker() -> dict[str, int]:
    return {"pid": os.getpid()}


@app.endpoint("LIST", "/rooms", impact="informational",
              intent="List the rooms of the hotel.", outcome="All rooms are returned.")
def rooms() -> Rooms:
    return Rooms([Room("1", 50), Room("2", 500)])
"""
ROW = {"type": "object", "properties": {"room_id": {"type": "string"}, "price": {"type": "number"}}}
CHEAP = definition(
    input_schema=fields(max_price={"type": "number"}),
    output_schema={"type": "object", "properties": {"rooms": {"type": "array", "items": ROW}}, "required": ["rooms"]},
)
GIVEN = {"max_price": 100}


class Caller:
    """Calls one worker over both faces, in one session of an agent."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    async def agtp(self, method: str, path: str, body: Any, *, agent: str = AGENT) -> tuple[int, Any]:
        headers = (("Agent-ID", agent), ("Session-ID", SESSION)) if agent == AGENT else (("Agent-ID", agent),)
        response = await self._worker._agtp.request(method, path, headers, json.dumps(body).encode())
        return response.status, json.loads(response.body)

    async def http(self, path: str, *, agent: str = AGENT) -> httpx.Response:
        headers = {"Agent-ID": agent} | ({"Session-ID": SESSION} if agent == AGENT else {})
        found: httpx.Response = await self._worker._http.post(path, json=GIVEN, headers=headers)
        return found


async def test_synthesis_of_one_worker_is_called_on_the_other_and_ends_on_both(tmp_path: Path) -> None:
    (tmp_path / "rooms.py").write_text(NEGOTIATING_APP)
    (tmp_path / "bespeak.toml").write_text('[server]\napp = "rooms:app"\n\n[negotiation]\npersistent = true\n')
    with serving(
        tmp_path, "--http", "127.0.0.1:0", "--workers", "2", "--store", str(tmp_path / "bespeak.db")
    ) as served:
        async with two_workers(served) as workers:
            first, second = (Caller(worker) for worker in workers)
            status, approved = await first.agtp("PROPOSE", "/", CHEAP)
            assert status == 263, approved
            # At once: a worker that does not know a synthesis asks the store before it answers 404.
            for caller in (second, first):
                assert (await caller.agtp("FIND", "/rooms/cheap", GIVEN))[0] == 200
                assert (await caller.http("/rooms/cheap:find")).json() == {"rooms": [{"room_id": "1", "price": 50}]}
                assert (await caller.agtp("FIND", "/rooms/cheap", GIVEN, agent=OTHER))[0] == 404
            assert (await second.agtp("SUSPEND", "/", {"synthesis_id": approved["synthesis_id"]}))[0] == 200
            assert (await second.agtp("FIND", "/rooms/cheap", GIVEN))[0] == 404

            async def ended() -> bool:
                return (await first.agtp("FIND", "/rooms/cheap", GIVEN))[0] == 404

            await eventually(ended)
            approved = (await first.agtp("PROPOSE", "/", {"endpoint": CHEAP, "persistent": True}))[1]
            assert approved["persistent"] is True
            for caller in (first, second):
                assert (await caller.http("/rooms/cheap:find")).status_code == 200
                assert (await caller.http("/rooms/cheap:find", agent=OTHER)).status_code == 404

            async def documents() -> list[bool]:
                pages = ("/", "/openapi.json", "/llms.txt", "/.well-known/ai")
                return ["/rooms/cheap" in (await worker.get(page)).text for worker in workers for page in pages]

            async def published() -> bool:
                return all(await documents())

            async def revoked() -> bool:
                return not any(await documents())

            assert await revoked(), "only its agent may call it"
            given = [approved["synthesis_id"], str(tmp_path)]
            operate = CliRunner().invoke
            assert (await to_thread.run_sync(operate, proposals, ["publish", *given, "--approve-texts"])).exit_code == 0
            await eventually(published)
            for caller in (first, second):
                assert (await caller.http("/rooms/cheap:find", agent=OTHER)).status_code == 200
            assert (await to_thread.run_sync(operate, proposals, ["revoke", *given])).exit_code == 0
            await eventually(revoked)
            for caller in (first, second):
                assert (await caller.http("/rooms/cheap:find")).status_code == 404
