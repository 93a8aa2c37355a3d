"""Calls of a task that waits for a decision are refused until it is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, Reply, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.sessions import Pausing
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

DESK, OTHER = "d" * 64, "b" * 64
BOOK = make_endpoint("BOOK", "/room", echo, impact="reversible")


async def escalate(bench: StatefulBench, task_id: str = "t", **headers: Any) -> str:
    body = {"task_id": task_id, "reason": "ethical_flag", "context": {}, "recipient": DESK}
    reply = await bench.send("ESCALATE", "/", body, **headers)
    assert (reply.status, reply.json["result"]["task_paused"]) == (202, True)
    case_id: str = reply.json["result"]["escalation_id"]
    return case_id


async def decide(bench: StatefulBench, case_id: str, status: str) -> None:
    body = {"target_id": case_id, "status": status, "reason": "because"}
    assert (await bench.send("CONFIRM", "/", body, agent=DESK, task_id="t")).status == 200


async def book(bench: StatefulBench, task_id: str = "t", **headers: Any) -> Reply:
    return await bench.send("BOOK", "/room", task_id=task_id, **headers)


@pytest.mark.requirement("CORE-4.9-4")
async def test_a_task_is_refused_from_its_escalation_to_its_acceptance() -> None:
    async with keeping(BOOK) as bench:
        assert (await book(bench)).status == 200
        case_id = await escalate(bench)
        refused = await book(bench)
        assert (refused.status, refused.error["code"]) == (409, "task-paused")
        assert (refused.error["escalation_id"], refused.error["routed_to"]) == (case_id, DESK)
        assert (refused.json["task_id"], refused.header("Task-ID")) == ("t", "t")
        await decide(bench, case_id, "deferred")
        assert (await book(bench)).error["escalation_status"] == "deferred"
        await decide(bench, case_id, "accepted")
        assert (await book(bench)).status == 200


async def test_a_rejected_task_does_not_continue_and_its_reason_is_told() -> None:
    async with keeping(BOOK) as bench:
        await decide(bench, await escalate(bench), "rejected")
        refused = await book(bench)
        assert (refused.status, refused.error["code"], refused.error["reason"]) == (403, "task-rejected", "because")
        assert (await book(bench, "u")).status == 200


async def test_other_tasks_other_agents_and_calls_without_a_task_run() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        assert (await book(bench, "u")).status == 200
        assert (await book(bench, agent=OTHER)).status == 200
        assert (await bench.send("BOOK", "/room")).status == 200


async def test_a_paused_task_may_look_and_escalate_but_not_delegate() -> None:
    async with keeping(BOOK, agents=(Agent(agent_id=AGENT, name="ada"),)) as bench:
        case_id = await escalate(bench)
        assert await escalate(bench, task_id="t", agent=AGENT) == case_id
        assert (await bench.send("DESCRIBE", "/", task_id="t")).status == 200
        assert (await bench.send("DISCOVER", "/methods", task_id="t")).status == 200
        given = {"target_agent_id": OTHER, "task": "x", "authority_scope": "a:b", "delegation_token": "x"}
        assert (await bench.send("DELEGATE", "/", given, task_id="t")).error["code"] == "task-paused"


async def test_answers_from_before_the_pause_are_replayed() -> None:
    async with keeping(BOOK) as bench:
        first = await book(bench, idempotency_key="k")
        await escalate(bench)
        again = await book(bench, idempotency_key="k")
        assert (again.response.body, again.header(REPLAYED[0])) == (first.response.body, "true")
        assert (await book(bench, idempotency_key="new")).error["code"] == "task-paused"


async def test_a_pause_survives_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        case_id = await escalate(bench)
    async with keeping(BOOK, store=open_store(place, role="sole")) as bench:
        assert (await book(bench)).error["escalation_id"] == case_id


async def test_the_store_is_asked_where_not_all_paused_tasks_are_in_memory() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        await escalate(bench, "u")
        tasks = bench.bench.server.tasks
        tasks._most = 0
        tasks._paused = {}
        tasks.complete = False
        assert (await book(bench)).error["code"] == "task-paused"
        assert (await book(bench, "u")).error["code"] == "task-paused"
        assert (await book(bench, "v")).status == 200


async def test_delegates_of_an_agent_share_its_pause() -> None:
    async with keeping(BOOK) as bench:
        await escalate(bench)
        server = bench.bench.server
        for principal, paused in (
            (Principal(agent_id=OTHER, delegators=(AGENT,)), True),
            (Principal(agent_id=OTHER), False),
        ):
            call = Call(Request("BOOK", "/room", "", {"task-id": "t"}, b"", Connection()), server)
            call.principal = principal
            routed = RoutedCall(call, server.routes.direct["/room"]["BOOK"])
            assert isinstance(Pausing(server.tasks).ask(routed), Refused) is paused


@pytest.mark.parametrize("task_id", ["a\u0000b", "x" * 65_537, " t", "a\r\nEvil: yes"])
async def test_a_task_that_no_call_can_name_cannot_be_escalated(task_id: str) -> None:
    async with keeping(BOOK) as bench:
        reply = await bench.send("ESCALATE", "/", {"task_id": task_id, "reason": "ethical_flag", "context": {}})
        assert (reply.status, reply.error["code"]) == (422, "invalid-task-id")
