"""MONITOR tells an agent of changes: once per change, while the agent may observe, where it has agreed to be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Context
from bespeak.runtime.monitors.methods import MOST_MONITORS
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.commands.messages import ListMessages
from bespeak.state.store.commands.monitors import MONITOR
from bespeak.state.store.commands.records import ChangeRecord, ListRecords, PutRecord, Record
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

METHODS = ("MONITOR", "CANCEL", "CHECK")
OTHER = "b" * 64
AGENTS = (Agent(agent_id=AGENT, name="porter"), Agent(agent_id=OTHER, name="boots"))


async def monitor(bench: StatefulBench, target: Any, *events: str, agent: str = AGENT, **fields: Any) -> Any:
    body = {"target": target, "events": list(events), "callback": "inbox", **fields}
    return await bench.send("MONITOR", "/", body, agent=agent)


async def subscribe(bench: StatefulBench, target: Any, *events: str, **fields: Any) -> str:
    reply = await monitor(bench, target, *events, **fields)
    assert reply.status == 200, reply.json
    subscription_id: str = reply.json["result"]["subscription_id"]
    return subscription_id


async def poll(bench: StatefulBench, subscription_id: str) -> Record:
    """Let the monitor look now, and wait until it has."""
    before = await find(bench, subscription_id)
    await bench.store.do(ChangeRecord(subscription_id, (MONITOR,), ("active",), "active", delay=0.0))
    found: Record = await until(bench, subscription_id, lambda record: record.version > before.version + 1)
    return found


async def until(bench: StatefulBench, subscription_id: str, reached: Callable[[Record], bool]) -> Record:
    async with asyncio.timeout(10):
        while not reached(record := await find(bench, subscription_id)):
            await asyncio.sleep(0.01)
        return record


async def find(bench: StatefulBench, subscription_id: str) -> Record:
    [record] = [one for one in await bench.store.read(ListRecords(MONITOR)) if one.record_id == subscription_id]
    return record


async def suspend(bench: StatefulBench, agent_id: str) -> None:
    change = SetAgentStatus(agent_id, "SUSPEND", frozenset({"active"}), "suspended", "ops", "-", agent_id, "active")
    assert not isinstance(await bench.store.do(change), Conflict)


async def inbox(bench: StatefulBench, agent: str = AGENT) -> list[Any]:
    found = await bench.store.read(ListMessages(agent))
    return [(content["event"], content.get("previous"), content["value"]) for content in map(_content, found)]


def _content(found: tuple[Record, Any]) -> Any:
    return found[0].content()["content"]


@pytest.mark.requirement("METHODS-8.3-2", "METHODS-8.3-3")
async def test_a_change_of_state_is_pushed_once() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        subscription_id = await subscribe(bench, "item-1", "state_changed", interval=3600)
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "taken"))
        await until(bench, subscription_id, lambda record: record.version > 1)
        assert await inbox(bench) == [("state_changed", "queued", "taken")]
        await poll(bench, subscription_id)
        assert await inbox(bench) == [("state_changed", "queued", "taken")]


async def test_a_target_that_ends_is_told_and_ends_the_monitor() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        subscription_id = await subscribe(bench, "item-1", "state_changed")
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "queued", lifetime=-1.0))
        await until(bench, subscription_id, lambda record: record.state == "stopped")
        assert await inbox(bench) == [("state_changed", "queued", "gone")]


async def test_changes_of_an_agent_are_pushed() -> None:
    async with keeping(methods=METHODS, agents=AGENTS) as bench:
        subscription_id = await subscribe(bench, OTHER, "status_changed", interval=3600)
        await suspend(bench, OTHER)
        await until(bench, subscription_id, lambda record: record.version > 1)
        assert await inbox(bench) == [("status_changed", "active", "suspended")]


async def test_a_monitor_stops_when_its_owner_is_suspended() -> None:
    async with keeping(methods=METHODS, agents=AGENTS) as bench:
        subscription_id = await subscribe(bench, OTHER, "status_changed")
        await suspend(bench, AGENT)
        await suspend(bench, OTHER)
        await until(bench, subscription_id, lambda record: record.state == "stopped")
        assert await inbox(bench) == []


async def test_an_endpoint_is_polled_with_the_authority_of_the_owner() -> None:
    rate, callers = {"eur": 1.0}, []

    def fetch(context: Context) -> Any:
        callers.append(context.principal.agent_id)
        return {"rates": {**rate, "of": context.input["of"]}}

    rates = make_endpoint("FETCH", "/rates", fetch, properties={"of": {"type": "string"}})
    async with keeping(rates, methods=METHODS) as bench:
        target = {"method": "FETCH", "path": "/rates", "parameters": {"of": "gold"}, "select": "rates.eur"}
        crossed = await subscribe(bench, target, "output_changed", threshold=1.5)
        below = await subscribe(bench, target, "output_changed", threshold={"lt": 0.5})
        for value in (1.2, 1.6, 1.7, 0.4, 0.3):
            rate["eur"] = value
            await poll(bench, crossed)
            await poll(bench, below)
        told = await inbox(bench)
        crossing, sinking = ("output_changed", 1.2, 1.6), ("output_changed", 1.7, 0.4)
        assert sorted(told, key=str) == [crossing, sinking, sinking]
        assert set(callers) == {AGENT}


async def test_failing_calls_change_the_availability_and_the_error_rate() -> None:
    fails = True

    def book(_: Any) -> Any:
        if fails:
            raise RuntimeError
        return {}

    async with keeping(make_endpoint("BOOK", "/room", book, impact="reversible"), methods=METHODS) as bench:
        available = await subscribe(bench, "BOOK /room", "availability_changed")
        failing = await subscribe(bench, "BOOK /room", "error_rate_changed", threshold={"gte": 0.5})
        for _ in range(3):
            assert (await bench.send("BOOK", "/room", {})).status == 500
        await poll(bench, available)
        await poll(bench, failing)
        await poll(bench, failing)
        assert await inbox(bench) == [
            ("availability_changed", "available", "failing"),
            ("error_rate_changed", 0.0, 1.0),
        ]


@pytest.mark.process
async def test_an_expression_that_begins_to_hold_is_told() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        for wrong in ("value +", "value + 1", "other == 1", "1"):
            refused = await monitor(bench, "item-1", "state_changed", threshold=wrong)
            assert (refused.status, refused.error["code"]) == (400, "invalid-threshold")
        subscription_id = await subscribe(
            bench, "item-1", "state_changed", threshold="value == 'done' && previous != value"
        )
        for before, after in (("queued", "taken"), ("taken", "done")):
            await bench.store.do(ChangeRecord("item-1", ("submission",), (before,), after))
            await poll(bench, subscription_id)
        assert await inbox(bench) == [("state_changed", "taken", "done")]


async def test_the_health_of_the_server_is_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.monitors.monitors._FRESH", 0.0)
    async with keeping(methods=METHODS) as bench:
        subscription_id = await subscribe(bench, "server", "health_changed")
        await bench.store.do(PutRecord("x-1", "x", AGENT, "open", "{}", due=1.0))
        await poll(bench, subscription_id)
        assert await inbox(bench) == [("health_changed", "ok", "failing")]


async def test_a_callback_elsewhere_agrees_before_it_is_told() -> None:
    document = ServerDocument(delivery=DeliverySettings(allow=("127.0.0.1",)))
    async with (
        keeping(agents=(Agent(agent_id=AGENT, name="porter"),), require_known_agents=False) as home,
        keeping(methods=METHODS, document=document) as bench,
    ):
        server = AgtpServer(home.bench.dispatcher)
        [(_, port)] = await server.start("127.0.0.1", 0)
        callback = f"agtp://127.0.0.1:{port}"
        await bench.store.do(*(PutRecord(f"item-{one}", "submission", one, "queued", "{}") for one in (AGENT, OTHER)))
        refused = await monitor(bench, f"item-{OTHER}", "state_changed", agent=OTHER, callback=callback)
        assert (refused.status, refused.error["code"]) == (400, "callback-refused")
        assert await bench.store.read(ListRecords(MONITOR)) == []
        await subscribe(bench, f"item-{AGENT}", "state_changed", callback=callback)
        assert await home.store.read(ListMessages(AGENT)) == []
        await bench.store.do(ChangeRecord(f"item-{AGENT}", ("submission",), ("queued",), "taken"))
        async with asyncio.timeout(10):
            while not (received := await home.store.read(ListMessages(AGENT))):
                await asyncio.sleep(0.01)
        [(record, _)] = received
        assert '"value":"taken"' in record.data
        assert await bench.store.read(ListMessages(AGENT)) == []
        await server.close()


@pytest.mark.process
async def test_processes_on_a_database_tell_of_a_change_once(postgres_dsn: str) -> None:
    async with (
        keeping(methods=METHODS, store=open_store(postgres_dsn, role="shared")) as bench,
        keeping(methods=METHODS, store=open_store(postgres_dsn, role="shared")) as second,
    ):
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        ids = [await subscribe(bench, "item-1", "state_changed") for _ in range(5)]
        await second.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "taken"))
        for subscription_id in ids:
            await until(bench, subscription_id, lambda record: '"taken"' in record.data)
        assert await inbox(bench) == [("state_changed", "queued", "taken")] * 5


async def test_two_processes_tell_of_a_change_once() -> None:
    async with keeping(methods=METHODS) as bench, keeping(methods=METHODS, store=bench.store):
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        ids = [await subscribe(bench, "item-1", "state_changed") for _ in range(5)]
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "taken"))
        for subscription_id in ids:
            await until(bench, subscription_id, lambda record: '"taken"' in record.data)
        assert await inbox(bench) == [("state_changed", "queued", "taken")] * 5


@pytest.mark.requirement("METHODS-8.3-4")
async def test_cancel_ends_a_monitor() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        ids = [await subscribe(bench, "item-1", "state_changed") for _ in range(2)]
        assert (await bench.send("CANCEL", "/", {"target_id": ids[0]})).status == 200
        body = {"recipient": "test.example", "content": {"event": "monitor_cancel", "subscription_id": ids[1]}}
        assert (await bench.send("NOTIFY", "/", body)).status == 200
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "taken"))
        assert (await bench.send("CHECK", "/", {"target": ids[0]})).json["result"]["status"] == "cancelled"
        assert [(await find(bench, one)).state for one in ids] == ["cancelled", "cancelled"]
        assert await inbox(bench) == []


@pytest.mark.requirement("METHODS-8.3-5", "METHODS-10.5-1", "METHODS-10.5-2")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"target": "item-2"}, 404, "target-not-found"),
        ({"target": OTHER, "events": ["status_changed"]}, 404, "target-not-found"),
        ({"target": "FETCH /nothing", "events": ["availability_changed"]}, 404, "target-not-found"),
        ({"target": "BOOK /room", "events": ["output_changed"]}, 404, "target-not-found"),
        ({"target": {"method": 7}, "events": ["availability_changed"]}, 400, "invalid-target"),
        ({"target": {"method": "BOOK", "x": 1}, "events": ["availability_changed"]}, 400, "invalid-target"),
        ({"target": {"method": "BOOK", "parameters": {"a": "x" * 10_000}}}, 400, "invalid-target"),
        ({"events": ["weather"]}, 400, "unknown-event"),
        ({"threshold": 3}, 400, "invalid-threshold"),
        ({"threshold": {"near": 3}}, 400, "invalid-threshold"),
        ({"target": "BOOK /room", "events": ["latency_changed"]}, 400, "invalid-threshold"),
        ({"interval": 1}, 400, "invalid-interval"),
        ({"interval": 0}, 422, "input-validation-failed"),
        ({"callback": OTHER}, 400, "callback-refused"),
        ({"callback": "https://10.0.0.1/hook"}, 400, "callback-refused"),
        ({"callback": "agtp://127.0.0.1:9"}, 400, "callback-refused"),
        ({"callback": "mailto:a@b.example"}, 400, "callback-refused"),
    ],
)
async def test_what_cannot_be_observed_or_told_is_refused(fields: Any, status: int, code: str) -> None:
    room = make_endpoint("BOOK", "/room", lambda _: {}, impact="reversible")
    async with keeping(room, methods=METHODS) as bench:
        await bench.store.do(
            PutRecord("item-1", "submission", AGENT, "queued", "{}"),
            PutRecord("item-2", "submission", OTHER, "queued", "{}"),
        )
        body = {"target": "item-1", "events": ["state_changed"], "callback": "inbox", **fields}
        reply = await bench.send("MONITOR", "/", body)
        assert (reply.status, reply.error["code"]) == (status, code)
        assert await bench.store.read(ListRecords(MONITOR)) == []


async def test_a_monitor_cannot_be_observed() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        subscription_id = await subscribe(bench, "item-1", "state_changed")
        assert (await monitor(bench, subscription_id, "state_changed")).status == 404


async def test_an_agent_has_a_limited_number_of_monitors() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(
            *(PutRecord(f"monitor-{n}", MONITOR, AGENT, "cancelled", "{}") for n in range(MOST_MONITORS))
        )
        reply = await monitor(bench, "server", "health_changed")
        assert (reply.status, reply.error["code"]) == (429, "too-many-monitors")
