"""EXECUTE runs the calls of a plan as a workflow: by the id of a plan of the caller, or as they are sent."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.workflows.test_goals import BOOKING, GOAL, GUEST
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.procedure import Procedure

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
SCOPE = "guests:read, activation:run"


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else None


async def execute(bench: StatefulBench, scope: str = SCOPE, **body: Any) -> Any:
    return await bench.send("EXECUTE", "/", body, authority_scope=scope)


async def plan(bench: StatefulBench) -> dict[str, Any]:
    result: dict[str, Any] = (await bench.send("PLAN", "/", GOAL, authority_scope=SCOPE)).json["result"]
    return result


async def test_a_plan_is_executed_by_its_id_or_as_it_was_returned() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        reply = await execute(bench, plan_id=(await plan(bench))["plan_id"])
        result = reply.json["result"]
        assert (reply.status, result["status"]) == (200, "completed")
        assert result["output"] == {"name": "name of guest_id of b-1"}
        assert reply.json["attribution"]["agent_id"] == AGENT
        made = await plan(bench)
        result = (await execute(bench, plan={"ordered_steps": made["ordered_steps"]})).json["result"]
        assert [step["status"] for step in result["steps"]] == ["done", "done"]


async def test_parameters_are_the_input_of_the_plan() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        step = {"method": "FETCH", "path": "/bookings/{id}", "parameters": {"id": {"$from": "input.id"}}}
        reply = await execute(bench, plan=[step], parameters={"id": "b-7"})
        assert reply.json["result"]["output"]["guest_id"] == "guest_id of b-7"
        failed = (await execute(bench, plan=[step])).json["result"]
        assert (failed["status"], failed["error"]["code"]) == ("failed", "invalid-reference")


async def test_a_repeated_request_runs_the_plan_once() -> None:
    ran: list[int] = []
    book = make_endpoint("BOOK", "/rooms", lambda _: {"number": len(ran), "x": ran.append(1)}, impact="reversible")
    async with keeping(book) as bench:
        body = {"plan": [{"method": "BOOK", "path": "/rooms"}], "idempotency_key": "k-1"}
        first, second = await execute(bench, **body), await execute(bench, **body)
        assert (first.json["result"], len(ran)) == (second.json["result"], 1)


async def test_a_plan_is_for_its_agent_with_the_authority_of_the_caller() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        plan_id = (await plan(bench))["plan_id"]
        result = (await execute(bench, "other:scope", plan_id=plan_id)).json["result"]
        assert (result["status"], result["error"]["code"]) == ("failed", "scope-violation")
        plan_id = (await plan(bench))["plan_id"]
        for agent, wanted in ((FRIEND, plan_id), (AGENT, "plan-" + "0" * 32)):
            refused = await bench.send("EXECUTE", "/", {"plan_id": wanted}, agent=agent, authority_scope=SCOPE)
            assert (refused.status, refused.error["code"]) == (404, "plan-not-found")


@rows(
    "body, code",
    ({}, "input-validation-failed"),
    ({"plan_id": "plan-" + "0" * 32, "action": "x"}, "input-validation-failed"),
    ({"plan_id": "rm -rf /"}, "input-validation-failed"),
    ({"plan": "ls"}, "input-validation-failed"),
    ({"plan": []}, "invalid-plan"),
    ({"plan": ["ls"]}, "invalid-plan"),
    ({"plan": {"steps": 3}}, "invalid-plan"),
    ({"plan": [{"method": "FETCH", "path": "/nowhere"}]}, "invalid-plan"),
    ({"plan": [{"method": "FETCH", "path": "/bookings/{id}"}]}, "invalid-plan"),
    ({"plan": [{"method": "CHAIN", "parameters": {"steps": []}}]}, "invalid-plan"),
    ({"plan": [{"method": "FETCH", "path": "/bookings/1", "parameters": {"id": {"$from": "2.id"}}}]}, "invalid-plan"),
    ({"plan": [{"method": "FETCH", "path": "/bookings/1", "procedure": "x"}]}, "invalid-plan"),
)
async def test_a_wrong_plan_is_refused_and_nothing_runs(body: dict[str, Any], code: str) -> None:
    async with keeping(BOOKING, methods=("CHAIN",)) as bench:
        assert (await execute(bench, **body)).told("code") == (422, code)


async def test_a_plan_is_not_a_step_of_a_workflow() -> None:
    async with keeping(BOOKING, methods=("CHAIN",)) as bench:
        inner = {"plan": [{"method": "FETCH", "path": "/bookings/1"}]}
        chain = await bench.send("CHAIN", "/", {"steps": [{"method": "EXECUTE", "parameters": inner}]})
        assert chain.json["result"]["steps"][0]["error"]["code"] == "invalid-plan"


def check(number: int) -> dict[str, int]:
    """Check a number."""
    return {"number": number}


async def test_an_action_of_a_step_runs_no_other_calls() -> None:
    async with keeping(BOOKING, methods=("CHAIN",)) as bench:
        inner = {"action": "chain", "parameters": {"steps": [{"method": "FETCH", "path": "/bookings/1"}]}}
        steps = [{"method": "EXECUTE", "parameters": inner}]
        reply = await bench.send("CHAIN", "/", {"steps": steps}, idempotency_key="k")
        assert reply.json["result"]["steps"][0]["error"]["code"] == "invalid-action"


@pytest.mark.parametrize("result", [{"x": {"$from": 5}}, {"x": {"$from": "later.x"}}, {"x": nested(40)}])
async def test_a_result_that_refers_to_nothing_is_refused_and_nothing_runs(result: dict[str, Any]) -> None:
    ran: list[int] = []
    book = make_endpoint("BOOK", "/rooms", lambda _: {"x": ran.append(1)}, impact="reversible")
    async with keeping(book) as bench:
        refused = await execute(bench, plan={"steps": [{"method": "BOOK", "path": "/rooms"}], "result": result})
        assert (refused.status, refused.error["code"], ran) == (422, "invalid-plan", [])


async def test_an_action_may_be_a_procedure() -> None:
    procedures = (Procedure(procedure_id="check", target=check),)
    async with keeping(make_endpoint("FIND", "/rooms", echo), methods=("RUN",), procedures=procedures) as bench:
        reply = await execute(bench, action="check", parameters={"number": 3})
        assert (reply.json["result"]["output"], reply.json["attribution"]["agent_id"]) == ({"number": 3}, AGENT)
        assert (await execute(bench, "other:scope", action="check", parameters={"number": 3})).status == 455
        assert (await execute(bench, action="rm -rf /")).error["code"] == "unknown-action"


def rows(name: str, *fields: str) -> dict[str, Any]:
    item = {"type": "object", "properties": {key: {"type": "string"} for key in fields}, "required": list(fields)}
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name]}


GUESTS = [{"id": "g-1", "email": "a@x.example"}, {"id": "g-2", "email": "b@x.example"}]
LISTED = make_endpoint("LIST", "/guests", lambda _: {"guests": GUESTS}, output=rows("guests", "id", "email"))
BOOKED = make_endpoint(
    "LIST",
    "/bookings",
    lambda given: {"bookings": [{"id": f"b of {given['guest_id']}", "total": "7"}]},
    properties={"guest_id": {"type": "string"}},
    required=("guest_id",),
    output=rows("bookings", "id", "total"),
)


@pytest.mark.process
@pytest.mark.parametrize(("email", "state"), [("b@x.example", "completed"), ("c@x.example", "failed")])
async def test_a_plan_may_choose_among_what_a_call_returned(email: str, state: str) -> None:
    goal = {"method": "LIST", "path": "/guest/bookings", "output": rows("bookings", "total")}
    async with keeping(LISTED, BOOKED) as bench:
        made = await bench.send("PLAN", "/", {"goal": goal, "constraints": {"given": {"email": email}}})
        assert "$expr" in str(made.json["result"]["ordered_steps"][1]["parameters"])
        result = (await execute(bench, plan_id=made.json["result"]["plan_id"])).json["result"]
        assert result["status"] == state
        if state == "completed":
            assert result["steps"][1]["output"]["bookings"][0]["id"] == "b of g-2"
        else:
            assert result["error"]["code"] == "expression-failed"
