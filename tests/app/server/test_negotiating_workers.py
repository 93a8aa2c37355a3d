"""Worker processes of one server: a synthesis that one of them makes is called on the other, and ends on both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio import to_thread
from click.testing import CliRunner
from tests.app.server.test_workers import eventually, two_workers
from tests.extensions.negotiation.definitions import definition, fields
from tests.process import serving

from bespeak.app.cli.proposals import proposals

pytestmark = [pytest.mark.process, pytest.mark.anyio]

AGENT, OTHER = "a" * 64, "b" * 64
SESSION = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"
APP = '''
import os
from dataclasses import dataclass

from bespeak import App, Policies

policies = Policies(scope_required_for_invocation=False, synthesis_enabled=True)
app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example", policies=policies)


@dataclass
class Room:
    room_id: str
    price: float


@dataclass
class Rooms:
    rooms: list[Room]


@app.endpoint("FETCH", "/worker", impact="informational")
def worker() -> dict[str, int]:
    """Fetch the id of the process that answers.

    Outcome: The id is returned.
    """
    return {"pid": os.getpid()}


@app.endpoint("LIST", "/rooms", impact="informational")
def rooms() -> Rooms:
    """List the rooms of the hotel.

    Outcome: All rooms are returned.
    """
    return Rooms([Room("1", 50), Room("2", 500)])
'''
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
    (tmp_path / "rooms.py").write_text(APP)
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
