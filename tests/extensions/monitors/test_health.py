"""A process is known to the others on its store while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.monitors.health import Presence, examine, judge
from bespeak.state.store.commands.messages import PutOutbox
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.commands.workers import CountWorkers, RenewWorker, Workers
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


def shared(folder: Path) -> Store:
    store = open_store(str(folder / "store.db"), role="shared")
    store.sole = False
    return store


async def workers(bench: StatefulBench) -> Any:
    reply = await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})
    [found] = [one for one in reply.json["result"]["components"] if one["name"] == "workers"]
    return found["status"], found["message"]


async def test_a_check_counts_the_processes_and_finds_silent_ones(tmp_path: Path) -> None:
    async with keeping(methods=("CHECK",), store=shared(tmp_path)) as bench:
        assert await workers(bench) == ("ok", "1 process works on the store.")
        async with keeping(methods=("CHECK",), store=shared(tmp_path)):
            assert await workers(bench) == ("ok", "2 processes work on the store.")
        assert await workers(bench) == ("ok", "1 process works on the store.")


async def test_a_silent_process_is_failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(methods=("CHECK",), store=shared(tmp_path)) as bench:
        await bench.store.do(RenewWorker("worker-9", "test.example", 60.0))
        monkeypatch.setattr("bespeak.extensions.monitors.health.SILENT", -1.0)
        assert (await workers(bench))[0] == "failing"


async def test_the_record_is_renewed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.monitors.health.EVERY", 0.0)
    store = shared(tmp_path)
    await store.start()
    presence = Presence(store, "test.example")
    await presence.start()
    assert await store.read(CountWorkers("test.example", 60.0)) == Workers(1, 0)
    await presence.stop()
    assert await store.read(CountWorkers("test.example", 60.0)) == Workers(0, 0)
    await store.close()


async def states(bench: StatefulBench) -> dict[str, tuple[str, str]]:
    found = await examine(bench.bench.server)
    return {one["name"]: (one["status"], one.get("message", "")) for one in found}


async def test_a_server_at_rest_is_healthy() -> None:
    async with keeping(methods=("CHECK",)) as bench:
        found = await examine(bench.bench.server)
        assert judge(found) == "ok"
        names = {"server", "store", "workflows", "queue of deliveries", "queue of what is due", "queue of submissions"}
        assert names <= {one["name"] for one in found}


async def test_what_waits_is_told_and_what_is_late_is_failing() -> None:
    async with keeping() as bench:  # without methods nothing is delivered
        await bench.store.do(
            PutOutbox(TOPIC, "x", "{}", -90.0),
            PutRecord("item-1", "submission", "ann", "queued", "{}"),
            PutRecord("x-1", "x", "ann", "open", "{}", delay=-30.0),
        )
        found = await states(bench)
        assert found["queue of deliveries"][0] == "failing"
        assert found["queue of deliveries"][1].startswith("1 wait, the oldest is 9")
        assert found["queue of what is due"][0] == "ok"
        assert found["queue of submissions"] == ("ok", "1 wait.")


async def test_an_examination_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.monitors.health.WITHIN", 0.0)
    async with keeping(methods=("CHECK",)) as bench:
        reply = await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})
        assert (reply.status, reply.error["code"]) == (408, "timeout")
