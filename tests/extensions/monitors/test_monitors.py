"""Monitors: their targets, conditions and thresholds, full inboxes, lost claims and restarts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.handler import Refusal
from bespeak.extensions.messages.message import MOST_RECEIVED
from bespeak.extensions.messages.store import ListMessages
from bespeak.extensions.monitors.health import Summary
from bespeak.extensions.monitors.monitors import (
    EVENTS,
    MISSING,
    Monitor,
    Monitors,
    MonitorTarget,
    Observation,
    Seen,
    View,
    bound_value,
    check_threshold,
    decode,
    describe,
    find_fault,
    find_member,
    holds,
    is_beyond,
    is_news,
    parse_target,
)
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.expressions.pool import Expressions
from bespeak.runtime.handling import to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, RemoveRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def subscribe(bench: StatefulBench) -> str:
    await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
    body = {"target": "item-1", "events": ["state_changed"], "callback": "inbox"}
    reply = await bench.send("MONITOR", "/", body)
    subscription_id: str = reply.json["result"]["subscription_id"]
    return subscription_id


def take() -> ChangeRecord:
    return ChangeRecord("item-1", ("submission",), ("queued",), "taken")


async def told(store: Store) -> list[Any]:
    found = await store.read(ListMessages(AGENT, limit=MOST_RECEIVED + 1))
    return [record.content()["content"]["value"] for record, _ in found if record.content()["kind"] == "monitor"]


async def until_told(store: Store, *, count: int = 1) -> list[Any]:
    async with asyncio.timeout(10):
        while len(found := await told(store)) < count:
            await asyncio.sleep(0.01)
    return found


async def test_a_change_that_nobody_looked_at_is_told_once_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(methods=("MONITOR",), store=open_store(place, role="sole")) as bench:
        subscription_id = await subscribe(bench)
    visitor = open_store(place)
    await visitor.start()
    again = ChangeRecord(subscription_id, ("monitor",), ("active",), "active", delay=0.0)
    await visitor.do(take(), again)
    await visitor.close()
    for _ in range(2):
        async with keeping(methods=("MONITOR",), store=open_store(place, role="sole")) as bench:
            assert await until_told(bench.store) == ["taken"]


async def test_monitors_of_one_agent_that_take_long_do_not_hold_up_those_of_another() -> None:
    looked, ends = asyncio.Event(), asyncio.Semaphore(0)
    slow = False

    async def count(given: dict[str, Any]) -> dict[str, Any]:
        if slow and given["who"] == "fast":
            looked.set()
        elif slow:
            await ends.acquire()
        return {"count": 1}

    endpoint = make_endpoint("FETCH", "/counts", count, properties={"who": {"type": "string"}})
    async with keeping(endpoint, methods=("MONITOR",)) as bench:
        for who, agent in [*[("slow", AGENT)] * 40, ("fast", "b" * 64)]:
            target = {"method": "FETCH", "path": "/counts", "parameters": {"who": who}}
            body = {"target": target, "events": ["output_changed"], "callback": "inbox"}
            assert (await bench.send("MONITOR", "/", body, agent=agent)).status == 200
        slow = True
        records = await bench.store.read(ListRecords("monitor"))
        carry = asyncio.create_task(bench.bench.server.part("monitors").carry(records))
        for _ in range(2):  # of the looks that have taken all places, two end
            ends.release()
        await asyncio.wait_for(looked.wait(), 10)
        for _ in range(40):
            ends.release()
        await carry


async def test_a_change_waits_for_room_in_the_inbox() -> None:
    async with keeping(methods=("MONITOR",)) as bench:
        subscription_id = await subscribe(bench)
        rows = [PutRecord(f"m-{n}", "message", AGENT, "unread", "{}") for n in range(MOST_RECEIVED)]
        for start in range(0, len(rows), 1000):
            await bench.store.do(*rows[start : start + 1000])
        await bench.store.do(take())
        async with asyncio.timeout(10):
            while (await bench.store.read(FindRecord(("monitor",), subscription_id))).version == 1:
                await asyncio.sleep(0.01)
        record = await bench.store.read(FindRecord(("monitor",), subscription_id))
        assert (record.state, record.content()["seen"]["state_changed"]) == ("active", {"value": "queued"})
        await bench.store.do(RemoveRecord("m-0"), RemoveRecord("m-1"))
        await bench.store.do(ChangeRecord(subscription_id, ("monitor",), ("active",), "active", delay=0.0))
        async with asyncio.timeout(10):
            while "taken" not in (await bench.store.read(FindRecord(("monitor",), subscription_id))).data:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "written", ["a" * 64, "FETCH /rates", "chain-1", {"method": "FETCH", "path": "/r", "parameters": {}}]
)
def test_a_target_is_told_as_it_was_written(written: Any) -> None:
    target = parse_target(written, "x.example")
    assert isinstance(target, MonitorTarget)
    assert parse_target(describe(target), "x.example") == target


OTHER = "b" * 64


async def look(bench: StatefulBench, target: MonitorTarget, *events: str, **fields: Any) -> Observation | Refused:
    authority = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})
    monitor = Monitor(target=target, events=events, callback=AGENT, interval=60.0, authority=authority, **fields)
    call = restore_call(authority, bench.bench.server, "MONITOR")
    assert not isinstance(call, Refused)
    return await Monitors(bench.bench.dispatcher, bench.store, ("submission",)).look(call, monitor)


async def test_a_record_has_its_state_and_version_for_its_owner_alone() -> None:
    async with keeping(methods=("MONITOR",)) as bench:
        await bench.store.do(*(PutRecord(one, "submission", one, "queued", "{}") for one in (AGENT, OTHER)))
        assert await look(bench, MonitorTarget("record", AGENT)) == Observation({"state_changed": "queued"}, 1)
        assert isinstance(await look(bench, MonitorTarget("record", OTHER)), Refused)


async def test_an_agent_has_its_status_and_trust() -> None:
    agents = (Agent(agent_id=AGENT, name="porter"), Agent(agent_id=OTHER, name="boots", trust_tier=2, trust_score=0.5))
    async with keeping(methods=("MONITOR",), agents=agents) as bench:
        found = await look(bench, MonitorTarget("agent", OTHER))
        assert found == Observation({"status_changed": "active", "trust_tier_changed": 2, "trust_score_changed": 0.5})


async def test_the_views_of_several_processes_are_added_up_until_they_are_old() -> None:
    async with keeping(make_endpoint("FETCH", "/rates", lambda _: {}), methods=("MONITOR",)) as bench:
        now = time.time()
        views = {"other": View(now, Summary(4, 3, 8.0)), "old": View(now - 3600, Summary(90, 0, 1.0))}
        found = await look(bench, MonitorTarget("endpoint", "/rates", "FETCH"), views=views)
        assert isinstance(found, Observation)
        assert found.values == {"availability_changed": "failing", "error_rate_changed": 0.75, "latency_changed": 2.0}
        assert "old" not in found.views


async def test_an_endpoint_without_an_answer_has_no_output_now_and_one_that_refuses_ends_it() -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError

    def refuse(_: Any) -> Any:
        raise Refusal("closed")

    endpoints = (
        make_endpoint("FETCH", "/a", fail),
        make_endpoint("FETCH", "/b", refuse, errors=("closed",)),
        make_endpoint("FETCH", "/c", lambda _: {}, scopes=("c:read",)),
        make_endpoint("FETCH", "/d", lambda _: {}, properties={"n": {"type": "integer"}}, required=("n",)),
    )
    async with keeping(*endpoints, methods=("MONITOR",)) as bench:
        for path in ("/a", "/b"):
            found = await look(bench, MonitorTarget("endpoint", path, "FETCH"), "output_changed")
            assert isinstance(found, Observation)
            assert "output_changed" not in found.values
        for path, expected in (("/c", 455), ("/d", 422)):
            refused = await look(bench, MonitorTarget("endpoint", path, "FETCH"), "output_changed")
            assert isinstance(refused, Refused)
            assert refused.status == expected


def test_large_values_are_known_by_digest_and_paths_follow_members_and_positions() -> None:
    assert bound_value({"a": 1}) == {"a": 1}
    large = {"text": "x" * 5000, "n": 1}
    assert bound_value(large) == bound_value(dict(reversed(large.items())))
    assert bound_value(large)["bytes"] > 5000
    value = {"rooms": [{"price": 7}], "a": None}
    assert (find_member(value, "rooms.0.price"), find_member(value, "a")) == (7, None)
    for path in ("rooms.1", "rooms.-1", "rooms.0.price.x", "", "rooms.²", "rooms." + "9" * 50):
        assert find_member(value, path) is MISSING


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@rows(
    "condition, value, expected",
    ("gold", "gold", True),
    ("gold", "silver", False),
    (2, 2.0, True),
    ({"gte": 2, "lt": 5}, 3, True),
    ({"gte": 2, "lt": 5}, 5, False),
    ({"gte": 2}, "3", False),
    ({"in": ["a", "b"]}, "b", True),
    ({"contains": "b"}, ["a", "b"], True),
    ({"ne": 1}, MISSING, False),
)
def test_a_condition_holds(condition: Any, value: Any, expected: bool) -> None:
    assert find_fault(condition) is None
    assert holds(condition, value) is expected


@pytest.mark.parametrize("condition", [{}, {"near": 1}, {"lt": 1, "x": 2}, {"in": 7}])
def test_what_is_not_a_condition_is_found(condition: Any) -> None:
    assert find_fault(condition)


@given(json, json)
def test_any_condition_is_tested_or_has_a_fault(condition: Any, value: Any) -> None:
    if find_fault(condition) is None:
        assert holds(condition, value) in (True, False)


@given(json, st.text())
def test_any_path_leads_somewhere_or_nowhere(value: Any, path: str) -> None:
    find_member(value, path)


@rows(
    "threshold, events, fits",
    (None, ("status_changed",), True),
    (None, ("latency_changed",), False),
    (0.5, ("trust_score_changed",), True),
    (0.5, ("trust_score_changed", "status_changed"), False),
    ({"eq": "failed"}, ("state_changed",), True),
    ({"eq": "failed"}, ("state_changed", "health_changed"), False),
    ({"like": "failed"}, ("state_changed",), False),
)
async def test_a_threshold_has_to_fit(threshold: Any, events: tuple[str, ...], fits: bool) -> None:
    assert (await check_threshold(threshold, events, Expressions()) is None) is fits


async def test_a_number_is_crossed_both_ways_and_a_condition_begins_to_hold() -> None:
    for threshold, expected in ((5, [False, True, False, True]), ({"gte": 5}, [False, True, False, False])):
        was, told = False, []
        for value in (4, 5, 6, 3):
            now = await is_beyond(threshold, value, None, Expressions())
            assert isinstance(now, bool)
            told.append(is_news(threshold, was=was, now=now))
            was = now
        assert told == expected


SERVER_ID = "rooms.example"


@rows(
    "written, kind, name",
    (AGENT, "agent", AGENT),
    ("rooms.example", "server", "server"),
    ("FETCH /rates", "endpoint", "/rates"),
    ({"method": "FETCH", "path": "/rates", "select": "eur"}, "endpoint", "/rates"),
    ("chain-1", "record", "chain-1"),
    (f"agtp://{AGENT}", "agent", AGENT),
    (f"agtp://{AGENT}@rooms.example:4480", "agent", AGENT),
    ("agtp://rooms.example:4480/rates", "endpoint", "/rates"),
    ("agtp://rooms.example/", "server", "server"),
    ("agtp://other.example/rates", "record", "agtp://other.example/rates"),
)
@pytest.mark.requirement("METHODS-8.3-6")
def test_the_form_of_a_target_says_what_it_is(written: Any, kind: str, name: str) -> None:
    target = parse_target(written, SERVER_ID)
    assert isinstance(target, MonitorTarget)
    assert (target.kind, target.name) == (kind, name)
    assert target.kind in EVENTS


@given(st.text() | st.dictionaries(st.text() | st.sampled_from(["method", "path"]), st.none() | st.text()))
def test_anything_is_a_target_or_a_fault(written: Any) -> None:
    assert isinstance(parse_target(written, SERVER_ID), MonitorTarget | str)


def test_a_monitor_is_read_as_it_was_written() -> None:
    monitor = Monitor(
        target=MonitorTarget("endpoint", "/rates", "FETCH", {"of": "gold"}, "eur"),
        events=("output_changed",),
        callback="a" * 64,
        interval=60.0,
        authority=Authority(agent_id="a" * 64, scopes=("rates:read",), headers={}),
        threshold={"lt": 0.5},
        version=7,
        seen={"output_changed": Seen(0.4, True)},
        views={"p": View(1.0, Summary(3, 1, 0.5))},
    )
    assert decode(to_json(monitor)) == monitor
