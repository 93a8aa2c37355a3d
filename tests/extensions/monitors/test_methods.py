"""MONITOR tells an agent of changes: once per change, while the agent may observe, where it has agreed to be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import ListMessages
from bespeak.extensions.monitors.methods import MOST_MONITORS
from bespeak.extensions.monitors.retries import MOST_BODY, call_id
from bespeak.extensions.monitors.store import KEPT_CALL, MONITOR
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Context
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, Record
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

METHODS = ("MONITOR", "CANCEL", "CHECK")
OTHER = "b" * 64
AGENTS = (Agent(agent_id=AGENT, name="porter"), Agent(agent_id=OTHER, name="boots"))


@asynccontextmanager
async def with_item() -> AsyncIterator[StatefulBench]:
    """Serve an agent that has submitted an item."""
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        yield bench


async def take_item(bench: StatefulBench) -> None:
    await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "taken"))


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
    async with with_item() as bench:
        subscription_id = await subscribe(bench, "item-1", "state_changed", interval=3600)
        await take_item(bench)
        await until(bench, subscription_id, lambda record: record.version > 1)
        assert await inbox(bench) == [("state_changed", "queued", "taken")]
        await poll(bench, subscription_id)
        assert await inbox(bench) == [("state_changed", "queued", "taken")]


async def test_a_target_that_ends_is_told_and_ends_the_monitor() -> None:
    async with with_item() as bench:
        subscription_id = await subscribe(bench, "item-1", "state_changed")
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "queued", lifetime=-1.0))
        await until(bench, subscription_id, lambda record: record.state == "stopped")
        assert await inbox(bench) == [("state_changed", "queued", "gone")]


@pytest.mark.requirement("METHODS-8.3-6", "METHODS-8.3-3")
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


@pytest.mark.requirement("METHODS-8.3-8")
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
    async with with_item() as bench:
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
    monkeypatch.setattr("bespeak.extensions.monitors.monitors._FRESH", 0.0)
    async with keeping(methods=METHODS) as bench:
        subscription_id = await subscribe(bench, "server", "health_changed")
        await bench.store.do(PutRecord("x-1", "x", AGENT, "open", "{}", due=1.0))
        await poll(bench, subscription_id)
        assert await inbox(bench) == [("health_changed", "ok", "failing")]


@pytest.mark.requirement("METHODS-8.3-11", "METHODS-10.5-1", "METHODS-10.5-2")
async def test_a_callback_elsewhere_agrees_before_it_is_told() -> None:
    document = ServerDocument(extension_tables={"delivery": DeliverySettings(allow=("127.0.0.1",))})
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


async def test_processes_on_one_store_tell_of_a_change_once(shared_place: str) -> None:
    async with (
        keeping(methods=METHODS, store=open_store(shared_place, role="shared")) as bench,
        keeping(methods=METHODS, store=open_store(shared_place, role="shared")) as second,
    ):
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        ids = [await subscribe(bench, "item-1", "state_changed") for _ in range(5)]
        await take_item(second)
        for subscription_id in ids:
            await until(bench, subscription_id, lambda record: '"taken"' in record.data)
        assert await inbox(bench) == [("state_changed", "queued", "taken")] * 5


@pytest.mark.requirement("METHODS-8.3-4")
async def test_cancel_ends_a_monitor() -> None:
    async with with_item() as bench:
        ids = [await subscribe(bench, "item-1", "state_changed") for _ in range(2)]
        assert (await bench.send("CANCEL", "/", {"target_id": ids[0]})).status == 200
        body = {"recipient": "test.example", "content": {"event": "monitor_cancel", "subscription_id": ids[1]}}
        assert (await bench.send("NOTIFY", "/", body)).status == 200
        await take_item(bench)
        assert (await check(bench, ids[0]))["status"] == "cancelled"
        assert [(await find(bench, one)).state for one in ids] == ["cancelled", "cancelled"]
        assert await inbox(bench) == []


@pytest.mark.requirement("METHODS-8.3-5", "METHODS-10.5-1", "METHODS-10.5-2")
@rows(
    "fields, status, code",
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
    async with with_item() as bench:
        subscription_id = await subscribe(bench, "item-1", "state_changed")
        assert (await monitor(bench, subscription_id, "state_changed")).status == 404


async def test_an_agent_has_a_limited_number_of_monitors() -> None:
    async with keeping(methods=METHODS) as bench:
        await bench.store.do(
            *(PutRecord(f"monitor-{n}", MONITOR, AGENT, "cancelled", "{}") for n in range(MOST_MONITORS))
        )
        reply = await monitor(bench, "server", "health_changed")
        assert (reply.status, reply.error["code"]) == (429, "too-many-monitors")


FRIEND = "b" * 64
RETRY_METHODS = ("RETRY", "CHAIN")
ROOM = {"room": {"type": "string"}}


class Desk:
    """Books rooms, and fails as often as it is told to."""

    def __init__(self) -> None:
        self.failing = 1
        self.booked: list[str] = []

    def book(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            self.failing -= 1
            raise ValueError("the desk is closed")
        self.booked.append(given["room"])
        return {"reservation": f"res-{given['room']}"}


@asynccontextmanager
async def desk(store: Store | None = None, **fields: Any) -> AsyncIterator[tuple[Desk, StatefulBench]]:
    made = Desk()
    book = make_endpoint("BOOK", "/rooms", made.book, impact="reversible", properties=ROOM, required=("room",))
    async with keeping(book, methods=RETRY_METHODS, store=store, **fields) as bench:
        yield made, bench


async def book(bench: StatefulBench, task: str = "task-1", room: str = "12", **headers: str) -> int:
    status: int = (await bench.send("BOOK", "/rooms", {"room": room}, task_id=task, **headers)).status
    return status


async def retry(bench: StatefulBench, task: str = "task-1", **fields: Any) -> Any:
    return await bench.send("RETRY", "/", {"original_task_id": task, **fields})


@pytest.mark.requirement("METHODS-8.5-3")
async def test_a_failed_call_is_repeated_with_its_input() -> None:
    async with desk() as (made, bench):
        assert await book(bench) == 500
        reply = await retry(bench)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["attempt"], result["code"]) == (200, "completed", 2, 200)
        assert (result["output"], made.booked) == ({"reservation": "res-12"}, ["12"])


@pytest.mark.requirement("METHODS-8.5-2")
async def test_a_call_that_succeeded_is_not_repeated() -> None:
    async with desk() as (made, bench):
        made.failing = 0
        assert await book(bench) == 200
        result = (await retry(bench)).json["result"]
        assert (result["status"], result["output"], made.booked) == ("suppressed", {"reservation": "res-12"}, ["12"])
        assert (await retry(bench, max_attempts=1)).json["result"]["status"] == "suppressed"


async def test_a_failed_call_is_not_displaced_by_another_one_of_its_task() -> None:
    async with desk() as (made, bench):
        await book(bench, room="12")
        assert await book(bench, room="14") == 200
        await retry(bench)
        assert made.booked == ["14", "12"]


@pytest.mark.requirement("METHODS-8.5-2")
async def test_a_call_under_an_idempotency_key_returns_its_recorded_answer() -> None:
    async with desk() as (made, bench):
        assert await book(bench, idempotency_key="k1") == 500
        assert await book(bench, "task-2", idempotency_key="k1") == 200
        result = (await retry(bench)).json["result"]
        assert (result["status"], result["code"], made.booked) == ("suppressed", 200, ["12"])


@pytest.mark.requirement("METHODS-8.5-4", "METHODS-8.5-6")
async def test_attempts_are_counted_in_the_store() -> None:
    async with desk() as (made, bench):
        made.failing = 9
        await book(bench)
        assert (await retry(bench, max_attempts=3)).json["result"]["status"] == "failed"
        assert (await retry(bench, max_attempts=3)).json["result"]["attempt"] == 3
        refused = await retry(bench, max_attempts=3)
        assert (refused.status, refused.error["code"], made.failing) == (409, "attempts-exhausted", 6)


@pytest.mark.requirement("METHODS-8.5-5")
async def test_a_delayed_retry_happens_later_with_backoff() -> None:
    async with desk() as (made, bench):
        made.failing = 2
        await book(bench)
        reply = await retry(bench, delay=0.01, max_attempts=5)
        assert (reply.status, reply.json["result"]["status"]) == (202, "scheduled")
        async with asyncio.timeout(20):
            while not made.booked:
                await asyncio.sleep(0.01)
            while (reply := await retry(bench)).status != 200:
                await asyncio.sleep(0.01)
        result = reply.json["result"]
        assert (result["status"], result["attempt"], made.booked) == ("suppressed", 3, ["12"])


async def test_a_scheduled_retry_cannot_be_retried_meanwhile() -> None:
    async with desk() as (_, bench):
        await book(bench)
        await retry(bench, delay=3600)
        refused = await retry(bench)
        assert (refused.status, refused.error["code"]) == (409, "task-running")


@pytest.mark.requirement("METHODS-8.5-4")
async def test_tasks_of_others_and_unknown_ones_do_not_exist() -> None:
    async with desk() as (made, bench):
        await book(bench)
        other = await bench.send("RETRY", "/", {"original_task_id": "task-1"}, agent=FRIEND)
        unknown = await retry(bench, "task-2")
        assert (other.status, other.error["code"], unknown.status) == (404, "task-not-found", 404)
        assert made.booked == []


async def test_gates_judge_the_repeated_call_again() -> None:
    made = Desk()
    endpoint = make_endpoint("BOOK", "/rooms", made.book, impact="reversible", properties=ROOM, scopes=("rooms:book",))
    async with keeping(endpoint, methods=RETRY_METHODS) as bench:
        assert await book(bench, authority_scope="rooms:book") == 500
        refused = (await retry(bench)).json["result"]
        assert (refused["status"], refused["code"], made.booked) == ("failed", 455, [])
        again = await bench.send("RETRY", "/", {"original_task_id": "task-1"}, authority_scope="rooms:book")
        assert again.json["result"]["status"] == "completed"


async def test_no_credentials_and_no_large_request_are_kept() -> None:
    async with desk() as (_, bench):
        await book(bench, authorization="Bearer secret-token")
        record = await bench.store.read(FindRecord((KEPT_CALL,), call_id(AGENT, "task-1")))
        assert "secret-token" not in record.data
        await book(bench, "task-9", "x" * MOST_BODY)
        assert (await retry(bench, "task-9")).status == 404


async def test_a_failed_workflow_is_repeated_from_the_failed_step() -> None:
    async with desk() as (made, bench):
        step = {"method": "BOOK", "path": "/rooms", "parameters": {"room": "7"}}
        chain = (await bench.send("CHAIN", "/", {"steps": [step]})).json["result"]
        assert chain["status"] == "failed"
        other = await bench.send("RETRY", "/", {"original_task_id": chain["chain_id"]}, agent=FRIEND)
        assert other.status == 404
        reply = await retry(bench, chain["chain_id"])
        assert (reply.status, reply.json["result"]["status"]) == (202, "scheduled")
        found = await bench.bench.server.part("workflows").wait(chain["chain_id"], 20.0)
        assert (found.record.state, made.booked) == ("completed", ["7"])
        assert (await retry(bench, chain["chain_id"])).json["result"]["status"] == "suppressed"


@pytest.mark.parametrize(
    "body",
    [{}, {"original_task_id": 7}, {"original_task_id": "t", "delay": -1}, {"original_task_id": "t", "max_attempts": 0}],
)
async def test_wrong_parameters_are_refused(body: dict[str, Any]) -> None:
    async with desk() as (_, bench):
        assert (await bench.send("RETRY", "/", body)).status == 422


TASK_IDS = [
    "t",
    f"task-{'a' * 32}",
    f"chain-{'0' * 32}",
    "x" * 5000,
    "\u65e5\u672c" * 900,
    "a/b?c=d&e#f",
    "say \"hi\" \\ 'x'",
    "a\tb  c",
    "%00%0a",
    "{id}",
    "../../etc",
]


async def test_task_ids_of_any_form_can_be_repeated_paused_and_found() -> None:
    endpoint = make_endpoint("BOOK", "/rooms", _refuse, impact="reversible")
    async with keeping(endpoint, methods=("RETRY",)) as bench:
        for task_id in TASK_IDS:
            assert (await bench.send("BOOK", "/rooms", {}, task_id=task_id)).status == 500
            again = await bench.send("RETRY", "/", {"original_task_id": task_id})
            assert (task_id, again.status) == (task_id, 200)
            assert (again.json["result"]["original_task_id"], again.json["result"]["attempt"]) == (task_id, 2)
            raised = {"task_id": task_id, "reason": "scope_limit", "context": {}}
            assert (await bench.send("ESCALATE", "/", raised)).status == 202
            assert (await bench.send("BOOK", "/rooms", {}, task_id=task_id)).error["code"] == "task-paused"
            assert (await bench.send("BOOK", "/rooms", {}, task_id=f"{task_id}.")).status == 500


def _refuse(_: dict[str, Any]) -> dict[str, Any]:
    raise ValueError


CHECK_METHODS = ("CHECK", "CHAIN", "REGISTER")


async def check(bench: StatefulBench, target: str, **fields: Any) -> Any:
    return (await bench.send("CHECK", "/", {"target": target, **fields})).json["result"]


def unreachable() -> Endpoint:
    """Return an endpoint whose upstream does not answer."""
    declared = tuple(f"upstream_{name}" for name in ("timeout", "connection_error", "malformed_response", "error"))
    endpoint = make_endpoint("FETCH", "/rates", dict, errors=(*declared, "upstream_authentication_failed"))
    return replace(endpoint, handler=ExternalService(url="https://127.0.0.1:9/rates", method="GET"))


@pytest.mark.requirement("METHODS-8.9-2")
async def test_a_shallow_check_says_that_the_server_answers() -> None:
    async with keeping(methods=CHECK_METHODS) as bench:
        for target in ("server", "test.example"):
            result = await check(bench, target)
            assert (result["status"], result["components"]) == ("ok", [{"name": "server", "status": "ok"}])


@pytest.mark.requirement("METHODS-8.9-2", "METHODS-8.9-3")
async def test_a_deep_check_asks_the_store_and_the_upstreams() -> None:
    async with keeping(unreachable(), methods=CHECK_METHODS) as bench:
        result = await check(bench, "server", depth="deep")
        states = {one["name"]: one["status"] for one in result["components"]}
        assert (states["store"], result["status"]) == ("ok", "failing")
        assert states["upstream of FETCH /rates"] == "failing"
        assert states["queue of deliveries"] == states["queue of what is due"] == "ok"
        assert "127.0.0.1" not in str(result)


@pytest.mark.requirement("METHODS-8.9-4", "METHODS-8.9-6")
async def test_an_endpoint_is_checked_with_its_upstream() -> None:
    async with keeping(unreachable(), make_endpoint("FIND", "/rooms", lambda _: {}), methods=CHECK_METHODS) as bench:
        for target in ("FETCH /rates", "upstream of FETCH /rates"):
            result = await check(bench, target)
            assert (result["status"], len(result["components"])) == ("failing", 2)
        assert (await check(bench, "FIND /rooms"))["status"] == "ok"
        for target in ("FIND /nothing", "upstream of server"):
            assert (await bench.send("CHECK", "/", {"target": target})).status == 404


@pytest.mark.requirement("METHODS-8.9-1")
async def test_a_resource_uri_means_an_endpoint_an_agent_or_the_server() -> None:
    agent = Agent(agent_id=AGENT, name="porter")
    endpoints = (unreachable(), make_endpoint("FIND", "/rooms", lambda _: {}))
    async with keeping(*endpoints, methods=CHECK_METHODS, agents=(agent,)) as bench:
        for target, name, state in (
            ("agtp://test.example/rates", "FETCH /rates", "failing"),
            ("agtp://test.example:4480/rooms", "FIND /rooms", "ok"),
            ("agtp://test.example", "server", "ok"),
            (f"agtp://{AGENT}", "porter", agent.status),
        ):
            result = await check(bench, target)
            assert (result["components"][0]["name"], result["status"]) == (name, state)
        for target in ("agtp://test.example/nothing", "agtp://other.example/rates"):
            assert (await bench.send("CHECK", "/", {"target": target})).status == 404


@pytest.mark.requirement("METHODS-8.9-6")
async def test_the_state_of_an_agent_is_told() -> None:
    agent = Agent(agent_id=AGENT, name="porter")
    async with keeping(methods=CHECK_METHODS, agents=(agent,)) as bench:
        assert (await check(bench, AGENT))["status"] == agent.status
        assert (await bench.send("CHECK", "/", {"target": "b" * 64})).status == 404


@pytest.mark.requirement("METHODS-8.9-6")
async def test_a_workflow_is_told_by_its_steps_to_its_owner_alone() -> None:
    async with keeping(make_endpoint("FIND", "/rooms", lambda _: {}), methods=CHECK_METHODS) as bench:
        steps = [{"name": "search", "method": "FIND", "path": "/rooms"}]
        chain_id = (await bench.send("CHAIN", "/", {"steps": steps})).json["result"]["chain_id"]
        result = await check(bench, chain_id)
        assert (result["status"], result["components"]) == ("completed", [{"name": "search", "status": "done"}])
        assert (await bench.send("CHECK", "/", {"target": chain_id}, agent="b" * 64)).status == 404
