"""CHAIN runs calls one after the other on behalf of its caller, and what it did survives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, DecideCase, ListCases
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

ROOM = {"room": {"type": "string"}}


class Hotel:
    """Endpoints that note what they are called with."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.cancelled: list[str] = []
        self.failing = 0
        """Number of times for which paying fails."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        changes: dict[str, Any] = {"impact": "reversible", "properties": ROOM, "required": ("room",)}
        return (
            make_endpoint("FIND", "/rooms", lambda _: {"rooms": [{"id": "12"}, {"id": "14"}]}),
            make_endpoint("BOOK", "/rooms/{room}", self.book, **changes),
            make_endpoint("CANCEL", "/rooms/{room}", self.cancel, **changes),
            make_endpoint("PAY", "/account", self.pay, impact="reversible", scopes=("account:pay",)),
        )

    def book(self, given: dict[str, Any]) -> dict[str, Any]:
        self.booked.append(given["room"])
        return {"reservation": f"res-{given['room']}"}

    def cancel(self, given: dict[str, Any]) -> dict[str, Any]:
        self.cancelled.append(given["room"])
        return {}

    def pay(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            self.failing -= 1
            raise ValueError("the bank is closed")
        return {"paid": True}


FIND = {"name": "search", "method": "FIND", "path": "/rooms"}
BOOK = {"name": "book", "method": "BOOK", "path": "/rooms/12"}
PAY = {"method": "PAY", "path": "/account"}


@asynccontextmanager
async def hotel(store: Store | None = None, **fields: Any) -> AsyncIterator[tuple[Hotel, StatefulBench]]:
    made = Hotel()
    async with keeping(*made.endpoints(), store=store, methods=("CHAIN",), **fields) as bench:
        yield made, bench


async def send(bench: StatefulBench, *steps: dict[str, Any], **fields: Any) -> Any:
    headers = {"authority_scope": "account:pay", **fields.pop("headers", {})}
    return await bench.send("CHAIN", "/", {"steps": list(steps), **fields}, **headers)


def states(reply: Any) -> list[str]:
    return [step["status"] for step in reply.json["result"]["steps"]]


@pytest.mark.requirement("METHODS-8.1-3", "METHODS-8.1-6")
async def test_steps_run_in_order_and_may_use_earlier_outputs() -> None:
    async with hotel() as (made, bench):
        book = {"method": "BOOK", "path": "/rooms/14", "parameters": {}}
        note = {"method": "FIND", "path": "/rooms", "parameters": {}}
        reply = await send(bench, FIND, book, note, PAY, context_propagation=True)
        result = reply.json["result"]
        assert (reply.status, result["status"], states(reply)) == (200, "completed", ["done"] * 4)
        assert result["steps"][1]["output"] == {"reservation": "res-14"}
        assert result["output"] == {"paid": True}
        assert made.booked == ["14"]


@pytest.mark.requirement("METHODS-8.1-4")
async def test_a_reference_takes_a_value_from_an_earlier_output() -> None:
    echoing = make_endpoint("DRAFT", "/memo", echo, properties={"text": {"type": "string"}})
    async with keeping(echoing, *Hotel().endpoints(), methods=("CHAIN",)) as bench:
        note = {"method": "DRAFT", "path": "/memo", "parameters": {"text": {"$from": "search.rooms[1].id"}}}
        reply = await send(bench, FIND, note, context_propagation=True)
        assert reply.json["result"]["output"] == {"text": "14"}


@pytest.mark.requirement("METHODS-8.1-7")
@pytest.mark.parametrize(
    ("steps", "fields", "said"),
    [
        ([{**PAY, "parameters": {"x": {"$from": "later.id"}}}], {"context_propagation": True}, "not an earlier step"),
        ([FIND, {**PAY, "parameters": {"x": {"$from": "search.id"}}}], {}, "Set context_propagation to true"),
        ([FIND, FIND], {}, "the name of an earlier step"),
        ([{"method": "FIND", "path": "/cellar"}], {}, "No endpoint has the path"),
        ([{"method": "CHAIN", "parameters": {"steps": []}}], {}, "which runs other calls"),
    ],
)
async def test_a_chain_that_cannot_run_is_refused_before_anything_runs(
    steps: list[dict[str, Any]], fields: dict[str, Any], said: str
) -> None:
    async with hotel() as (made, bench):
        reply = await send(bench, BOOK, *steps, **fields)
        assert reply.status == 422
        assert said in reply.error["message"]
        assert made.booked == []


async def test_a_step_is_judged_by_the_authority_of_the_caller() -> None:
    async with hotel() as (made, bench):
        reply = await bench.send("CHAIN", "/", {"steps": [BOOK, PAY]})
        assert (states(reply), reply.json["result"]["steps"][1]["code"]) == (["done", "failed"], 455)
        assert made.booked == ["12"]


@pytest.mark.requirement("METHODS-8.1-2")
async def test_a_failure_undoes_what_can_be_undone() -> None:
    async with hotel() as (made, bench):
        made.failing = 9
        book = {**BOOK, "compensate": {"method": "CANCEL", "path": "/rooms/12"}}
        reply = await send(bench, book, PAY)
        assert (reply.json["result"]["status"], states(reply)) == ("failed", ["undone", "failed"])
        assert (made.booked, made.cancelled) == (["12"], ["12"])


@pytest.mark.requirement("METHODS-8.1-2")
async def test_a_failed_step_can_be_skipped_or_tried_again() -> None:
    async with hotel() as (made, bench):
        made.failing = 1
        skipped = await send(bench, PAY, BOOK, on_failure="skip")
        assert (skipped.json["result"]["status"], states(skipped)) == ("completed", ["skipped", "done"])
        made.failing = 2
        repeated = await send(bench, PAY, on_failure="retry")
        assert repeated.json["result"]["steps"][0] == {
            "step": 1,
            "method": "PAY",
            "path": "/account",
            "status": "done",
            "attempts": 3,
            "code": 200,
            "output": {"paid": True},
        }


async def decide(bench: StatefulBench, state: str) -> None:
    [case] = await bench.store.read(ListCases())
    await bench.store.do(DecideCase(case.case_id, state, "desk", "att-1", kinds=(case.kind,)))


async def until(bench: StatefulBench, chain_id: str, state: str) -> Any:
    async with asyncio.timeout(10):
        while True:
            found = await bench.bench.server.workflows.find(chain_id)
            if found.record.state == state:
                return found
            await asyncio.sleep(0.01)


@pytest.mark.requirement("METHODS-8.1-2")
@pytest.mark.parametrize(("decision", "end"), [(ACCEPTED, "completed"), (REJECTED, "failed")])
async def test_an_escalated_step_waits_for_a_decision(decision: str, end: str) -> None:
    async with hotel() as (made, bench):
        made.failing = 1
        waiting = await send(bench, BOOK, {**PAY, "on_failure": "escalate"})
        assert (waiting.status, waiting.json["result"]["status"]) == (202, "waiting")
        await decide(bench, decision)
        await until(bench, waiting.json["result"]["chain_id"], end)
        assert made.booked == ["12"]


async def test_a_step_that_must_be_confirmed_makes_the_chain_wait_and_continue() -> None:
    made = Hotel()
    endpoints = [*made.endpoints()]
    endpoints[1] = make_endpoint("BOOK", "/rooms/{room}", made.book, impact="irreversible", properties=ROOM)
    policies = Policies(scope_required_for_invocation=False, confirm_irreversible=True)
    async with keeping(*endpoints, methods=("CHAIN",), policies=policies) as bench:
        waiting = await send(bench, FIND, BOOK, PAY)
        assert (waiting.status, states(waiting)) == (202, ["done", "waiting", "pending"])
        assert made.booked == []
        await decide(bench, ACCEPTED)
        await until(bench, waiting.json["result"]["chain_id"], "completed")
        assert made.booked == ["12"]


@pytest.mark.requirement("METHODS-8.1-5", "METHODS-8.1-7")
async def test_time_bounds_the_whole() -> None:
    async def forever(_: dict[str, Any]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async with keeping(make_endpoint("AWAIT", "/porter", forever), methods=("CHAIN",)) as bench:
        reply = await send(bench, {"method": "AWAIT", "path": "/porter"}, timeout=0.05)
        assert (reply.status, reply.error["code"], reply.error["status"]) == (408, "timeout", "failed")


async def test_a_repeated_request_with_the_same_key_is_the_same_chain() -> None:
    async with hotel() as (made, bench):
        first = await send(bench, BOOK, headers={"idempotency_key": "k"})
        again = await send(bench, BOOK, headers={"idempotency_key": "k"})
        assert first.json["result"]["chain_id"] == again.json["result"]["chain_id"]
        assert made.booked == ["12"]


async def test_another_agent_does_not_find_the_workflow() -> None:
    async with hotel() as (_, bench):
        reply = await send(bench, BOOK)
        workflows = bench.bench.server.workflows
        assert await workflows.find(reply.json["result"]["chain_id"], "b" * 64) is None
        assert (await workflows.find(reply.json["result"]["chain_id"], AGENT)).has_ended


def found(text: str) -> dict[str, Any]:
    """Return a booking whose room is computed."""
    return {**BOOK, "path": "/rooms/0", "parameters": {"room": {"$expr": text}}}


@pytest.mark.process
async def test_expressions_compute_parameters_from_earlier_steps() -> None:
    async with hotel() as (made, bench):
        text = "string(int(steps.search.rooms[0].id) + size(steps.search.rooms))"
        reply = await send(bench, FIND, found(text), context_propagation=True)
        assert (states(reply), made.booked) == (["done", "done"], ["14"])


@pytest.mark.process
async def test_a_step_whose_condition_is_false_is_skipped() -> None:
    async with hotel() as (made, bench):
        rooms = "size(steps.search.rooms)"
        steps = ({**BOOK, "when": f"{rooms} > 5"}, {"method": "PAY", "path": "/account", "when": "steps.book == null"})
        reply = await send(bench, FIND, *steps, context_propagation=True)
        assert (states(reply), made.booked) == (["done", "skipped", "done"], [])
        assert "error" not in reply.json["result"]["steps"][1]


@pytest.mark.process
@pytest.mark.parametrize(
    ("step", "code"),
    [
        (found("steps.search.none"), "expression-failed"),
        ({**BOOK, "when": "steps.search.rooms[9] == 1"}, "expression-failed"),
        ({**BOOK, "when": "1 + 1"}, "expression-failed"),
        (
            found("['0123456789']" + ".map(v, v + v)" * 25 + "[0]"),
            "expression-",
        ),  # memory, or time where that is scarce
    ],
)
async def test_a_failing_expression_fails_its_step_and_says_why(step: dict[str, Any], code: str) -> None:
    async with hotel() as (made, bench):
        reply = await send(bench, FIND, step, context_propagation=True)
        assert (states(reply), made.booked) == (["done", "failed"], [])
        assert reply.json["result"]["steps"][1]["error"]["code"].startswith(code)


@pytest.mark.process
@pytest.mark.parametrize(
    "steps",
    [
        (found("steps.search.rooms[0].id"), FIND),
        (FIND, found("steps.book.reservation")),
        (FIND, {**BOOK, "when": "search.rooms == 1"}),
        (FIND, found("1 +")),
        (FIND, *({**BOOK, "name": f"n{n}", "parameters": {"x": [{"$expr": "1"}] * 3}} for n in range(90))),
    ],
)
async def test_expressions_that_name_no_earlier_step_begin_nothing(steps: tuple[dict[str, Any], ...]) -> None:
    async with hotel() as (made, bench):
        refused = await send(bench, *steps, context_propagation=True)
        assert (refused.status, refused.error["code"], made.booked) == (422, "invalid-chain", [])


@pytest.mark.process
async def test_a_compensation_may_compute_from_its_own_step() -> None:
    async with hotel() as (made, bench):
        made.failing = 9
        undo = {
            "method": "CANCEL",
            "path": "/rooms/0",
            "parameters": {"room": {"$expr": "steps.book.reservation + '!'"}},
        }
        reply = await send(bench, {**BOOK, "compensate": undo}, PAY)
        assert (states(reply), made.cancelled) == (["undone", "failed"], ["res-12!"])


async def test_the_path_of_a_step_may_name_its_parameters() -> None:
    async with hotel() as (made, bench):
        book = {"method": "BOOK", "path": "/rooms/{room}", "parameters": {"room": {"$from": "search.rooms[1].id"}}}
        reply = await send(bench, FIND, book, context_propagation=True)
        assert (states(reply), made.booked) == (["done", "done"], ["14"])
        refused = await send(bench, {"method": "BOOK", "path": "/rooms/{room}"})
        assert (refused.status, refused.error["code"]) == (422, "endpoint-not-found")
