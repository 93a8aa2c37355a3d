"""Looking at a target tells its values, or that it is not there for the one who looks."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.handler import Refusal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.monitors.monitors import Observation, Observer, bound_value
from bespeak.runtime.monitors.statistics import Summary
from bespeak.runtime.monitors.target import Monitor, Target, View
from bespeak.runtime.workflows.spec import restore_call
from bespeak.state.store.commands.records import PutRecord

pytestmark = pytest.mark.anyio

OTHER = "b" * 64


async def look(bench: StatefulBench, target: Target, *events: str, **fields: Any) -> Observation | Refused:
    authority = Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT})
    monitor = Monitor(target=target, events=events, callback=AGENT, interval=60.0, authority=authority, **fields)
    call = restore_call(authority, bench.bench.server, "MONITOR")
    assert not isinstance(call, Refused)
    return await Observer(bench.bench.dispatcher, bench.store, ("submission",)).look(call, monitor)


async def test_a_record_has_its_state_and_version_for_its_owner_alone() -> None:
    async with keeping(methods=("MONITOR",)) as bench:
        await bench.store.do(*(PutRecord(one, "submission", one, "queued", "{}") for one in (AGENT, OTHER)))
        assert await look(bench, Target("record", AGENT)) == Observation({"state_changed": "queued"}, 1)
        assert isinstance(await look(bench, Target("record", OTHER)), Refused)


async def test_an_agent_has_its_status_and_trust() -> None:
    agents = (Agent(agent_id=AGENT, name="porter"), Agent(agent_id=OTHER, name="boots", trust_tier=2, trust_score=0.5))
    async with keeping(methods=("MONITOR",), agents=agents) as bench:
        found = await look(bench, Target("agent", OTHER))
        assert found == Observation({"status_changed": "active", "trust_tier_changed": 2, "trust_score_changed": 0.5})


async def test_the_views_of_several_processes_are_added_up_until_they_are_old() -> None:
    async with keeping(make_endpoint("FETCH", "/rates", lambda _: {}), methods=("MONITOR",)) as bench:
        now = time.time()
        views = {"other": View(now, Summary(4, 3, 8.0)), "old": View(now - 3600, Summary(90, 0, 1.0))}
        found = await look(bench, Target("endpoint", "/rates", "FETCH"), views=views)
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
            found = await look(bench, Target("endpoint", path, "FETCH"), "output_changed")
            assert isinstance(found, Observation)
            assert "output_changed" not in found.values
        for path, expected in (("/c", 455), ("/d", 422)):
            refused = await look(bench, Target("endpoint", path, "FETCH"), "output_changed")
            assert isinstance(refused, Refused)
            assert refused.status == expected


def test_a_large_value_is_known_by_its_digest() -> None:
    assert bound_value({"a": 1}) == {"a": 1}
    large = {"text": "x" * 5000, "n": 1}
    assert bound_value(large) == bound_value(dict(reversed(large.items())))
    assert bound_value(large)["bytes"] > 5000
