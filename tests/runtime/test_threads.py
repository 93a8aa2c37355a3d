"""`def` handlers run in threads: bounded, cancelled without losing a place or a key, and the loop stays free."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.service import echo, make_endpoint
from tests.stateful import StatefulBench, keeping

import bespeak
from bespeak import App, Context
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.header_values import decode64
from bespeak.runtime import concurrency, dispatcher, settlement
from bespeak.runtime.concurrency import (
    FairSemaphore,
    OverloadedError,
    Workers,
    compute_in_thread,
    run_in_thread,
    running_threads,
)
from bespeak.runtime.exchange import REPLAYED
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


class Gate:
    """A function that waits in its thread until it may go on."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Semaphore(0), threading.Event()
        self.calls: list[str] = []
        self.failure: Exception | None = None

    def __call__(self, name: str = "a") -> dict[str, str]:
        self.calls.append(name)
        self.entered.release()
        assert self.open.wait(20)
        if self.failure is not None:
            raise self.failure
        return {"name": name}

    async def wait_entered(self) -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, self.entered.acquire, True, 20)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


# The pool.


async def test_a_full_pool_refuses_and_every_place_comes_back() -> None:
    workers, gate = Workers(most=2, waiting=1), Gate()
    calls = [workers.submit(gate, str(number)) for number in range(3)]
    with pytest.raises(OverloadedError):
        workers.submit(gate)
    assert workers.pending == 3
    extra = workers.submit(lambda: "cleaned up", always=True)
    gate.open.set()
    assert [(await call.future)["name"] for call in calls] == ["0", "1", "2"]
    assert await extra.future == "cleaned up"
    assert workers.pending == 0


async def test_threads_serve_agents_in_turn_and_one_agent_does_not_take_all_places() -> None:
    workers, gate = Workers(most=1, waiting=8), Gate()
    calls = [workers.submit(gate, "running", owner="ann")]
    await gate.wait_entered()
    calls += [workers.submit(gate, f"ann {number}", owner="ann") for number in range(4)]
    with pytest.raises(OverloadedError):
        workers.submit(gate, owner="ann")
    calls += [workers.submit(gate, f"bob {number}", owner="bob") for number in range(2)]
    gate.open.set()
    await asyncio.gather(*(call.future for call in calls))
    assert gate.calls == ["running", "bob 0", "ann 0", "bob 1", "ann 1", "ann 2", "ann 3"]
    assert workers.pending == 0


async def test_computations_run_two_at_a_time_in_turns_of_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_COMPUTING", FairSemaphore(2, most=8, most_of_one=4))
    release, ended = threading.Event(), list[str]()

    def compute(name: str) -> None:
        release.wait(30)
        ended.append(name)

    names = ["a1", "a2", "a3", "a4", "a5", "a6", "b1"]
    tasks = [asyncio.create_task(compute_in_thread(name[0], compute, name)) for name in names]
    await asyncio.sleep(0)  # two run, and the others wait
    with pytest.raises(OverloadedError):
        await compute_in_thread("a", compute, "a7")
    release.set()
    await asyncio.gather(*tasks)
    assert set(ended[:2]) == {"a1", "a2"}
    assert "b1" in ended[2:4]


async def test_a_cancelled_call_that_has_not_begun_never_runs_and_one_that_runs_keeps_its_place() -> None:
    workers, gate = Workers(most=1, waiting=1), Gate()
    running = workers.submit(gate, "running")
    await gate.wait_entered()
    waiting = workers.submit(gate, "waiting")
    running.future.cancel()
    waiting.future.cancel()
    assert (running.begun, waiting.begun, workers.pending) == (True, False, 2)
    with pytest.raises(OverloadedError):
        workers.submit(gate)
    rest = running.rest()
    gate.open.set()
    assert await rest == {"name": "running"}
    await until(lambda: workers.pending == 0)
    assert gate.calls == ["running"]
    assert await running.rest() == {"name": "running"}
    assert await workers.submit(gate, "next").future == {"name": "next"}


async def test_no_place_is_lost_however_calls_end() -> None:
    before = running_threads()
    for _ in range(50):
        tasks = [asyncio.create_task(run_in_thread(function)) for function in (tuple, dict, lambda: 1 / 0, list)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: running_threads() == before)


async def test_a_thread_has_a_copy_of_the_context_variables() -> None:
    variable = ContextVar("variable", default="unset")
    variable.set("outer")

    def change() -> str:
        seen = variable.get()
        variable.set("inner")
        return seen

    assert (await run_in_thread(change), variable.get()) == ("outer", "outer")


def test_a_result_for_a_loop_that_is_closed_is_dropped() -> None:
    workers, gate = Workers(most=1, waiting=1), Gate()

    async def leave() -> None:
        workers.submit(gate, "left")
        await gate.wait_entered()

    async def ask() -> Any:
        gate.open.set()
        return await workers.submit(gate, "later").future

    asyncio.run(leave())
    assert asyncio.run(ask()) == {"name": "later"}
    assert workers.pending == 0


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
async def test_a_forked_process_has_threads_of_its_own() -> None:
    assert await run_in_thread(str, 1) == "1"
    child = os.fork()
    if child == 0:
        asyncio.set_event_loop_policy(None)
        asyncio._set_running_loop(None)
        os._exit(0 if asyncio.run(run_in_thread(str, 2)) == "2" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Handlers.


def in_thread(*arguments: Any, **fields: Any) -> Endpoint:
    endpoint = make_endpoint(*arguments, impact="irreversible", **fields)
    assert isinstance(endpoint.handler, RegisteredFunction)
    return replace(endpoint, handler=replace(endpoint.handler, inline=False))


async def test_a_def_runs_in_a_thread_with_its_context_and_an_inline_one_in_the_loop() -> None:
    app = App("x", server_id="x", operator="x", contact="x@x.example")
    texts = {"impact": "informational", "intent": "Query it.", "outcome": "It is returned."}

    def where(context: Context) -> dict[str, str]:
        context.progress(1)
        return {"thread": threading.current_thread().name.partition("_")[0], "path": context.path}

    async def waits(context: Context) -> dict[str, str]:
        return where(context)

    def returns_coroutine(context: Context) -> dict[str, str]:
        return waits(context)  # type: ignore[return-value] # as a decorator may do

    app.endpoint("QUERY", "/thread", **texts)(where)  # type: ignore[arg-type]
    app.endpoint("QUERY", "/inline", inline=True, **texts)(where)  # type: ignore[arg-type]
    app.endpoint("QUERY", "/async", **texts)(waits)  # type: ignore[arg-type]
    app.endpoint("QUERY", "/both", **texts)(returns_coroutine)  # type: ignore[arg-type]
    async with bespeak.connect(app, scopes=["x:y"]) as service:
        found = [(await service.call("QUERY", f"/{name}"))["thread"] for name in ("thread", "inline", "async", "both")]
    here = threading.current_thread().name
    assert found == ["bespeak-handler", here, here, here]


async def test_a_call_beyond_the_places_is_answered_503_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_workers", Workers(most=1, waiting=0))
    gate = Gate()
    async with keeping(in_thread("BOOK", "/room", gate)) as bench:
        first = asyncio.create_task(bench.send("BOOK", "/room", {}))
        await gate.wait_entered()
        refused = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert refused.refusal == (503, "too-many-calls")
        assert refused.header("Retry-After") == "1"
        gate.open.set()
        assert (await first).status == 200
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200
    assert len(gate.calls) == 2


async def recorded(store: Store) -> list[int]:
    found = [msgspec.json.decode(decode64(jws.split(".")[1]) or b"") for *_, jws in await store.read(ScanAudit())]
    return [record["status"] for record in found]


async def cancel_in_thread(bench: StatefulBench, gate: Gate) -> None:
    given_up = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
    await gate.wait_entered()
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)


@pytest.mark.parametrize("sole", [True, False])
async def test_the_key_of_a_cancelled_call_is_held_until_its_thread_ends_and_then_has_its_answer(*, sole: bool) -> None:
    gate, store = Gate(), open_store("memory", role="sole")
    store.sole = sole
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(in_thread("BOOK", "/room", gate), store=store, document=document) as bench:
        await cancel_in_thread(bench, gate)
        for _ in range(3):
            again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
            assert again.refusal == (409, "idempotency-key-in-progress")
        gate.open.set()
        await until(lambda: not bench.bench.dispatcher._settlement._abandoned)  # type: ignore[union-attr]
        replayed = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (replayed.status, replayed.json, replayed.header(REPLAYED[0])) == (200, {"name": "a"}, REPLAYED[1])
        assert await recorded(store) == [409, 409, 409, 200, 200]
    assert gate.calls == ["a"]


async def test_a_cancelled_call_that_fails_in_its_thread_frees_its_key() -> None:
    gate = Gate()
    gate.failure = ValueError("no room")
    async with keeping(in_thread("BOOK", "/room", gate)) as bench:
        await cancel_in_thread(bench, gate)
        gate.open.set()
        await until(lambda: not bench.bench.dispatcher._settlement._abandoned)  # type: ignore[union-attr]
        gate.failure = None
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200
    assert len(gate.calls) == 2


async def test_a_cancelled_call_that_has_not_begun_frees_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_workers", Workers(most=1, waiting=5))
    gate = Gate()
    async with keeping(in_thread("BOOK", "/room", gate)) as bench:
        busy = asyncio.create_task(bench.send("BOOK", "/room", {}))
        await gate.wait_entered()
        given_up = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await until(lambda: running_threads() == 2)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        again = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        gate.open.set()
        assert [(await reply).status for reply in (busy, again)] == [200, 200]
    assert len(gate.calls) == 2


@pytest.mark.parametrize("sole", [True, False])
async def test_stopping_does_not_wait_for_a_thread_that_never_ends(
    monkeypatch: pytest.MonkeyPatch, *, sole: bool
) -> None:
    monkeypatch.setattr(settlement, "_PATIENCE", 0.01)
    gate, store = Gate(), open_store("memory", role="sole")
    store.sole = sole
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with asyncio.timeout(20), keeping(in_thread("BOOK", "/room", gate), store=store, document=document) as bench:
        await cancel_in_thread(bench, gate)
        await bench.bench.dispatcher.finish()
        assert await recorded(store) == [408]
        if not sole:  # the lease in the store goes on
            again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
            assert again.refusal == (409, "idempotency-key-in-progress")
    gate.open.set()
    await until(lambda: running_threads() == 0)


async def test_a_step_that_outlives_the_timeout_of_its_composition_is_not_repeated() -> None:
    gate = Gate()
    app = App("x", server_id="x", operator="x", contact="x@x.example")

    @app.endpoint("BOOK", "/room", impact="reversible", intent="Book it.", outcome="It is booked.")
    def book() -> dict[str, str]:
        return gate()

    @app.recipe("RESERVE", "/stay", impact="reversible", timeout_seconds=0.05, intent="Book it.", outcome="Booked.")
    def stay() -> dict[str, str]:
        return app.step("BOOK", "/room")  # type: ignore[no-any-return]

    service = app.service()
    async with keeping(*service.endpoints, recipes=service.recipes) as bench:
        for _ in range(2):  # the second one waits for the step of the first
            reply = await bench.send("RESERVE", "/stay", {}, idempotency_key="k")
            assert reply.error["details"]["code"] == "composition-timeout"
            assert gate.calls == ["a"]
        gate.open.set()
        await until(lambda: running_threads() == 0)
    assert gate.calls == ["a"]


# The loop.


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every step count as one that holds the loop."""
    monkeypatch.setattr(concurrency, "HELD", -1.0)
    monkeypatch.setattr(dispatcher, "HELD", -1.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_holds_the_loop_is_named_once(caplog: pytest.LogCaptureFixture, *, waits: bool) -> None:
    async def handle() -> dict[str, str]:
        if waits:
            await asyncio.sleep(0)
        return {}

    async with keeping(make_endpoint("BOOK", "/room", handle), make_endpoint("BOOK", "/hall", echo)) as bench:
        for path in ("/room", "/room", "/hall"):
            assert (await bench.send("BOOK", path, {})).status == 200
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert told[0].startswith("BOOK /room: tests.function() held the event loop for ")
    assert "remove inline=True" in told[1]


@pytest.mark.usefixtures("impatient")
async def test_a_built_in_method_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    async with keeping() as bench:
        assert (await bench.send("DISCOVER", "/methods")).status == 200
        assert "held the event loop" not in caplog.text
