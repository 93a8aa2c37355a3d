"""A process is known to the others on its store while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stateful import StatefulBench, keeping

from bespeak.runtime.monitors.health import Presence
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
        monkeypatch.setattr("bespeak.runtime.monitors.health.SILENT", -1.0)
        assert (await workers(bench))[0] == "failing"


async def test_the_record_is_renewed_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.monitors.health.EVERY", 0.0)
    store = shared(tmp_path)
    await store.start()
    presence = Presence(store, "test.example")
    await presence.start()
    assert await store.read(CountWorkers("test.example", 60.0)) == Workers(1, 0)
    await presence.stop()
    assert await store.read(CountWorkers("test.example", 60.0)) == Workers(0, 0)
    await store.close()
