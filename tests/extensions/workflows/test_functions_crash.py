"""Workflow functions in processes: killed at each kind of await, with two workers, and on every face."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.faces.mcp.tools import MODERN, connected_to
from tests.process import Served, serving
from tests.service import AGENT

import bespeak

pytestmark = pytest.mark.process

SERVICE = '''
import asyncio
import os
from pathlib import Path

from bespeak import App, Context, Run

HERE = Path(__file__).parent
app = App("Trips", server_id="trips.example", operator="Acme", contact="ops@trips.example")


async def effect(name, key):
    """Write an effect, and wait at it if the test wants that."""
    with (HERE / "effects").open("a") as file:
        file.write(f"{name} {key}\\n")
    (HERE / f"reached-{name}").touch()
    while (HERE / f"hold-{name}").exists():
        await asyncio.sleep(0.01)
    return name


async def step(name: str, idempotency_key: str) -> str:
    return await effect(name, idempotency_key)


@app.endpoint("BOOK", "/rooms", impact="reversible")
async def book(name: str, context: Context) -> dict[str, str]:
    """Book a room.

    Outcome: It is booked.
    """
    return {"room_id": await effect(name, context.request.headers["idempotency-key"])}


@app.endpoint("CANCEL", "/rooms/{room_id}", impact="reversible")
async def cancel(room_id: str, context: Context) -> dict[str, str]:
    """Cancel a room.

    Outcome: It is free.
    """
    await effect(f"undo-{room_id}", context.request.headers["idempotency-key"])
    return {}


async def branch(run: Run, name: str) -> str:
    await run.step(step, f"{name}-one")
    return await run.step(step, f"{name}-two")


@app.workflow("trip")
async def trip(run: Run, fails: bool = False) -> dict[str, list[str]]:
    """Do one of everything."""
    undo = ("CANCEL", "/rooms/{room_id}")
    rooms = [(await run.call("BOOK", "/rooms", name="call", undo=undo))["room_id"], await run.step(step, "step")]
    pair = await run.together(branch(run, "left"), run.call("BOOK", "/rooms", name="right", undo=undo))
    mapped = await run.map(step, ["m1", "m2", "m3"], at_once=2)
    await run.sleep(1.0)
    paid = await run.wait_for("payment")
    if fails:
        raise ValueError("it fails")
    await run.step(step, "last")
    return {"all": [*rooms, pair[0], pair[1]["room_id"], *mapped, paid]}


@app.workflow("stay")
async def stay(run: Run, guest: str, waits: bool = False) -> dict[str, str]:
    """Stay for a night.

    Outcome: A room is booked.
    """
    room = await run.call("BOOK", "/rooms", name=guest)
    if waits:
        await run.wait_for("payment")
    return {"room": room["room_id"]}


app.endpoint("BOOK", "/stays", impact="reversible")(stay)
'''
CONFIGURATION = """
[policies]
scope_required_for_invocation = false
[methods]
enable = ["RUN", "CHECK"]
[idempotency]
lease = 1
"""
HEADERS = {"Agent-ID": AGENT, "Authority-Scope": "activation:run"}


async def ask(uri: str, method: str, path: str, body: dict[str, Any], **headers: str) -> Any:
    async with bespeak.connect(uri) as service:
        reply = await service.request(method, path, body, headers={**HEADERS, **headers})
        assert reply.ok, reply
        return reply.output


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


async def state_of(uri: str, run_id: str, *states: str) -> Any:
    async with asyncio.timeout(30):
        while True:
            found = await ask(uri, "CHECK", "/", {"target": run_id})
            if found["status"] in states:
                return found
            await asyncio.sleep(0.02)


def notify(uri: str, run_id: str) -> None:
    given = {"workflow_id": run_id, "name": "payment", "value": "paid"}
    asyncio.run(ask(uri, "NOTIFY", "/workflows", given))


def kill(served: Served) -> None:
    served.process.send_signal(signal.SIGKILL)
    assert served.process.wait(20) == -signal.SIGKILL


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgres_store") if request.param == "postgres" else tmp_path / "bespeak.db")


@pytest.mark.parametrize("at", ["call", "step", "left-two", "right", "m3", "sleeping", "last", "undo-call"])
def test_a_run_goes_on_after_kill_9(tmp_path: Path, kept: str, at: str) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION)
    (tmp_path / f"hold-{at}").touch()
    fails = at.startswith("undo")
    options = ("--store", kept)
    with serving("service:app", *options, cwd=tmp_path) as served:
        given = {"procedure_id": "trip", "input": {"fails": fails}}
        run_id = asyncio.run(ask(served.uri, "RUN", "/", given, Prefer="respond-async"))["run_id"]
        if at in ("last", "undo-call"):
            notify(served.uri, run_id)
        if at == "sleeping":
            asyncio.run(state_of(served.uri, run_id, "sleeping"))
        else:
            asyncio.run(until((tmp_path / f"reached-{at}").exists))
        kill(served)
    (tmp_path / f"hold-{at}").unlink()
    with serving("service:app", *options, cwd=tmp_path) as served:
        if at not in ("last", "undo-call"):
            notify(served.uri, run_id)
        report = asyncio.run(state_of(served.uri, run_id, "completed", "failed", "stopped"))
    lines = (tmp_path / "effects").read_text().split("\n")[:-1]
    keys = dict(line.split() for line in lines)
    assert len(set(lines)) == len(keys), "an effect that is repeated has the same key"
    running = {"right": {"right", "left-one", "left-two"}, "left-two": {"left-two", "right"}, "m3": {"m1", "m2", "m3"}}
    repeated = {line.split()[0] for line in lines if lines.count(line) > 1}
    assert repeated <= running.get(at, {at})
    if at != "sleeping":
        assert at in repeated
    if fails:
        assert (report["status"], report["error"]["code"]) == ("failed", "failed")
        assert [name for name in keys if name.startswith("undo")] == ["undo-right", "undo-call"]
    else:
        every = ["call", "step", "left-two", "right", "m1", "m2", "m3", "paid"]
        assert (report["status"], report["output"]) == ("completed", {"all": every})


def test_an_endpoint_that_is_a_workflow_answers_alike_on_every_face_of_two_workers(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION)
    options = ("--workers", "2", "--http", "127.0.0.1:0", "--mcp")
    with serving("service:app", *options, cwd=tmp_path) as served:
        asyncio.run(on_every_face(served))


async def on_every_face(served: Served) -> None:
    given, expected = {"guest": "ann"}, {"room": "ann"}
    assert await ask(served.uri, "BOOK", "/stays", given) == expected
    async with httpx.AsyncClient(base_url=served.url, headers={"Agent-ID": AGENT}, trust_env=False) as web:
        reply = await web.post("/stays:book", json=given)
        assert (reply.status_code, reply.json()) == (200, expected)
        later = await web.post("/stays:book", json={**given, "waits": True}, headers={"Prefer": "respond-async"})
        assert (later.status_code, later.headers["preference-applied"]) == (202, "respond-async")
    async with connected_to(f"{served.url}/mcp", MODERN, Agent_ID=AGENT) as client:
        called = await client.call_tool("book_stays", given)
        assert (called.is_error, called.structured_content) == (False, expected)
    run_id = later.json()["run_id"]
    await ask(served.uri, "NOTIFY", "/workflows", {"workflow_id": run_id, "name": "payment"})
    assert (await state_of(served.uri, run_id, "completed"))["output"] == expected
