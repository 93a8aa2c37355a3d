"""A procedure that an agent registers is a chain of calls, which waits until somebody else has approved it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.extensions.workflows.procedures import release
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, DecideCase, ListCases

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
METHODS = ("RUN", "REGISTER", "CHAIN")
FLOOR = {"floor": {"type": "integer"}}
ROOMS = make_endpoint("FIND", "/rooms", lambda given: {"rooms": [given.get("floor", 0)]}, properties=FLOOR)
BOOK = make_endpoint("BOOK", "/rooms", lambda _: {"booked": True}, impact="reversible", scopes=("rooms:book",))


async def run(bench: StatefulBench, procedure_id: str, given: Any = None) -> Any:
    body = {"procedure_id": procedure_id, **({} if given is None else {"input": given})}
    return await bench.send("RUN", "/", body, authority_scope="activation:run")


async def propose(bench: StatefulBench, data: Any, **fields: Any) -> Any:
    return await bench.send("REGISTER", "/", {"entity_type": "procedure", "data": data}, **fields)


STEPS = [{"method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "input.floor"}}}]


async def decide(bench: StatefulBench, status: str) -> None:
    cases = await bench.store.read(ListCases())
    await bench.store.do(DecideCase(cases[-1].case_id, status, "operator:ann", "att-1", kinds=("escalation",)))


@pytest.mark.requirement("METHODS-8.8-4", "METHODS-10.4-1", "METHODS-10.4-2")
async def test_a_procedure_of_an_agent_waits_for_an_approval() -> None:
    async with keeping(ROOMS, methods=METHODS) as bench:
        made = (await propose(bench, {"steps": STEPS})).json["result"]
        refused = await run(bench, made["entity_id"], {"floor": 2})
        assert (refused.status, refused.error["code"]) == (403, "procedure-refused")
        own = await bench.send("CONFIRM", "/", {"target_id": made["escalation_id"], "status": "accepted"})
        assert own.status == 403
        await decide(bench, ACCEPTED)
        assert (await run(bench, made["entity_id"], {"floor": 2})).json["result"]["output"] == {"rooms": [2]}


@pytest.mark.requirement("METHODS-10.4-2")
async def test_a_validation_releases_a_procedure_too() -> None:
    async with keeping(ROOMS, methods=METHODS) as bench:
        made = (await propose(bench, {"steps": STEPS})).json["result"]
        await bench.store.do(release(made["entity_id"]))
        assert (await run(bench, made["entity_id"], {"floor": 1})).json["result"]["status"] == "completed"


async def test_a_rejected_procedure_never_runs_and_is_nobody_elses() -> None:
    async with keeping(ROOMS, methods=METHODS) as bench:
        made = (await propose(bench, {"steps": STEPS})).json["result"]
        await decide(bench, REJECTED)
        assert (await run(bench, made["entity_id"])).status == 403
        body = {"procedure_id": made["entity_id"]}
        other = await bench.send("RUN", "/", body, agent=FRIEND, authority_scope="activation:run")
        assert (other.status, other.error["code"]) == (404, "procedure-not-found")


@pytest.mark.requirement("METHODS-10.4-1")
@pytest.mark.parametrize(
    "data",
    [
        "rm -rf /",
        {"code": "print(1)"},
        {"steps": STEPS, "code": "print(1)"},
        {"steps": []},
        {"steps": ["ls"]},
        {"steps": [{"method": "RUN", "path": "/", "parameters": {"procedure_id": "x"}}]},
        {"steps": [{"method": "FIND", "path": "/nowhere"}]},
        {"steps": [{"method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "later"}}}]},
        {"steps": [{"method": "FIND", "path": "/rooms", "procedure": "square"}]},
        {"steps": STEPS, "input": {"type": "nothing"}},
        {"steps": STEPS, "description": "x" * 70_000},
    ],
)
async def test_code_and_wrong_steps_are_not_registered(data: Any) -> None:
    async with keeping(ROOMS, methods=METHODS) as bench:
        refused = await propose(bench, data)
        assert (refused.status, refused.error["code"]) == (422, "invalid-data")
        assert await bench.store.read(ListCases()) == []


async def test_steps_of_a_procedure_need_the_authority_of_the_caller() -> None:
    async with keeping(ROOMS, BOOK, methods=METHODS) as bench:
        made = (await propose(bench, {"steps": [{"method": "BOOK", "path": "/rooms"}]})).json["result"]
        await decide(bench, ACCEPTED)
        result = (await run(bench, made["entity_id"])).json["result"]
        assert (result["status"], result["error"]["code"]) == ("failed", "scope-violation")
