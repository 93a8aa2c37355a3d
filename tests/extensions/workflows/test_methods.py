"""CHAIN runs calls one after the other on behalf of its caller, and what it did survives a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Refusal
from bespeak.contract.policy import Policies
from bespeak.contract.procedure import Procedure
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.workflows.methods import is_workflow_id
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.extensions.workflows.states import PAUSED
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.runtime.identity.authority import Authority
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, DecideCase, ListCases
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

ROOM = {"room": {"type": "string"}}


class Hotel:
    """Endpoints that note what they are called with."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.cancelled: list[str] = []
        self.failing = 0  # number of times for which paying fails

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
    async with keeping(*made.endpoints(), store=store, methods=("CHAIN", "BATCH", "RUN"), **fields) as bench:
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
        assert (result["steps"][1]["output"], result["output"]) == ({"reservation": "res-14"}, {"paid": True})
        assert made.booked == ["14"]


@pytest.mark.requirement("METHODS-8.1-4")
async def test_a_reference_takes_a_value_from_an_earlier_output() -> None:
    echoing = make_endpoint("DRAFT", "/memo", echo, properties={"text": {"type": "string"}})
    async with keeping(echoing, *Hotel().endpoints(), methods=("CHAIN",)) as bench:
        note = {"method": "DRAFT", "path": "/memo", "parameters": {"text": {"$from": "search.rooms[1].id"}}}
        reply = await send(bench, FIND, note, context_propagation=True)
        assert reply.json["result"]["output"] == {"text": "14"}


@pytest.mark.requirement("METHODS-8.1-7")
@rows(
    "steps, fields, said",
    ([{**PAY, "parameters": {"x": {"$from": "later.id"}}}], {"context_propagation": True}, "not an earlier step"),
    ([FIND, {**PAY, "parameters": {"x": {"$from": "search.id"}}}], {}, "Set context_propagation to true"),
    ([FIND, FIND], {}, "the name of an earlier step"),
    ([{"method": "FIND", "path": "/cellar"}], {}, "No endpoint has the path"),
    ([{"method": "CHAIN", "parameters": {"steps": []}}], {}, "steps/1/parameters/steps: "),
    ([{"method": "RUN", "parameters": {"procedure_id": "x"}}], {}, "which runs other calls"),
)
async def test_chain_that_cannot_run_is_refused(steps: list[dict[str, Any]], fields: dict[str, Any], said: str) -> None:
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
            found = await bench.bench.server.part("workflows").find(chain_id)
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
        [step] = reply.error["steps"]
        assert (step["status"], step["error"]["code"]) == ("failed", "interrupted")


async def test_a_repeated_request_with_the_same_key_is_the_same_chain() -> None:
    async with hotel() as (made, bench):
        first = await send(bench, BOOK, headers={"idempotency_key": "k"})
        again = await send(bench, BOOK, headers={"idempotency_key": "k"})
        assert first.json["result"]["chain_id"] == again.json["result"]["chain_id"]
        assert made.booked == ["12"]


async def test_another_agent_does_not_find_the_workflow() -> None:
    async with hotel() as (_, bench):
        reply = await send(bench, BOOK)
        workflows = bench.bench.server.part("workflows")
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
@rows(
    "step, code",
    (found("steps.search.none"), "expression-failed"),
    ({**BOOK, "when": "steps.search.rooms[9] == 1"}, "expression-failed"),
    ({**BOOK, "when": "1 + 1"}, "expression-failed"),
    (found("['0123456789']" + ".map(v, v + v)" * 25 + "[0]"), "expression-"),  # memory, or time where that is scarce
)
async def test_a_failing_expression_fails_its_step_and_says_why(step: dict[str, Any], code: str) -> None:
    async with hotel() as (made, bench):
        reply = await send(bench, FIND, step, context_propagation=True)
        assert (states(reply), made.booked) == (["done", "failed"], [])
        assert reply.json["result"]["steps"][1]["error"]["code"].startswith(code)


@pytest.mark.process
@rows(
    "steps",
    (found("steps.search.rooms[0].id"), FIND),
    (FIND, found("steps.book.reservation")),
    (FIND, {**BOOK, "when": "search.rooms == 1"}),
    (FIND, found("1 +")),
    (FIND, *({**BOOK, "name": f"n{n}", "parameters": {"x": [{"$expr": "1"}] * 3}} for n in range(90))),
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
        assert (await send(bench, {"method": "BOOK", "path": "/rooms/{room}"})).refusal == (422, "endpoint-not-found")


STEPS = [{"name": "wait", "method": "AWAIT", "path": "/porter"}, {"method": "BOOK", "path": "/rooms"}]


class Paused:
    """A chain that is paused during its first step."""

    def __init__(self, impact: str = "reversible") -> None:
        self.impact = impact
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.booked = 0

    async def wait(self, _: dict[str, Any]) -> dict[str, Any]:
        self.begun.set()
        await self.release.wait()
        return {"waited": True}

    def book(self, _: dict[str, Any]) -> dict[str, Any]:
        self.booked += 1
        return {}

    def endpoints(self) -> tuple[Any, ...]:
        return (
            make_endpoint("AWAIT", "/porter", self.wait, impact=self.impact),
            make_endpoint("BOOK", "/rooms", self.book, impact="reversible"),
        )

    async def pause(self, bench: StatefulBench, **fields: Any) -> dict[str, Any]:
        chain = asyncio.create_task(bench.send("CHAIN", "/", {"steps": STEPS}))
        await self.begun.wait()
        [workflow_id] = bench.bench.server.part("workflows")._driving
        reply = await bench.send("PAUSE", "/", {"workflow_id": workflow_id, **fields})
        assert reply.status == 200, reply.json
        self.release.set()
        receipt = (await chain).json["result"]
        assert (receipt["status"], [one["status"] for one in receipt["steps"]]) == ("paused", ["done", "pending"])
        result: dict[str, Any] = reply.json["result"]
        return result


async def pause_until(bench: StatefulBench, workflow_id: str, state: str) -> None:
    async with asyncio.timeout(10):
        while (await bench.bench.server.part("workflows").find(workflow_id)).record.state != state:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("METHODS-8.6-4", "METHODS-8.7-2", "METHODS-8.7-3", "METHODS-8.6-7")
async def test_the_running_step_is_kept_and_the_next_one_waits_for_resume() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench, reason="maintenance")
        assert (paused["status"], made.booked) == ("paused", 0)
        given = {"workflow_id": paused["workflow_id"], "resumption_nonce": paused["resumption_nonce"]}
        wrong = await bench.send("RESUME", "/", {**given, "resumption_nonce": "x"})
        assert (wrong.status, wrong.error["code"]) == (409, "resumption-nonce-wrong")
        assert (await bench.send("RESUME", "/", given, agent="b" * 64)).refusal == (404, "workflow-not-found")
        assert (await bench.send("RESUME", "/", given)).json["result"]["status"] == "running"
        await pause_until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1
        assert (await bench.send("RESUME", "/", given)).refusal == (409, "workflow-not-paused")


async def test_nothing_begins_after_a_step_that_changes_nothing_either() -> None:
    made = Paused("informational")
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        assert made.booked == 0
        await bench.send("RESUME", "/", {"workflow_id": paused["workflow_id"]})
        await pause_until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1


async def test_a_chain_whose_running_step_fails_stays_paused_until_it_is_resumed() -> None:
    made = Paused()

    async def fail(_: dict[str, Any]) -> dict[str, Any]:
        await made.wait(_)
        raise ValueError("the porter is ill")

    async with keeping(
        make_endpoint("AWAIT", "/porter", fail, impact="reversible"), methods=("CHAIN", "PAUSE")
    ) as bench:
        chain = asyncio.create_task(bench.send("CHAIN", "/", {"steps": STEPS[:1]}))
        await made.begun.wait()
        [workflow_id] = bench.bench.server.part("workflows")._driving
        await bench.send("PAUSE", "/", {"workflow_id": workflow_id})
        made.release.set()
        assert (await chain).json["result"]["status"] == "paused"
        await bench.send("RESUME", "/", {"workflow_id": workflow_id})
        await pause_until(bench, workflow_id, "failed")


async def test_a_long_step_does_not_end_the_pause_of_its_batch() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("BATCH", "PAUSE")) as bench:
        workflows = bench.bench.server.part("workflows")
        workflows._lease = 0.03
        calls = [{"method": "AWAIT", "path": "/porter"}, {"method": "BOOK", "path": "/rooms"}]
        batch = asyncio.create_task(bench.send("BATCH", "/", {"calls": calls}))
        await made.begun.wait()
        [workflow_id] = workflows._driving
        await bench.send("PAUSE", "/", {"workflow_id": workflow_id})
        workflows._journals[workflow_id].learn("paused")  # as the end of another call of the batch has told
        version = (await workflows.find(workflow_id)).record.version
        async with asyncio.timeout(10):
            while (record := (await workflows.find(workflow_id)).record).version < version + 3:  # the lease is renewed
                await asyncio.sleep(0.01)
        assert (record.state, record.due) == ("paused", None)
        made.release.set()
        assert (await batch).json["result"]["status"] == "paused"


@pytest.mark.requirement("METHODS-8.6-3")
async def test_a_pause_ends_at_its_time() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench, resume_at="2099-01-01T00:00:00Z")
        assert paused["resume_at"] == "2099-01-01T00:00:00Z"
        workflows = bench.bench.server.part("workflows")
        record = (await workflows.find(paused["workflow_id"])).record
        assert record.due == 4070908800
        await workflows.take_over([record])  # what the due loop does at that time
        await pause_until(bench, paused["workflow_id"], "completed")
        assert made.booked == 1


@pytest.mark.requirement("METHODS-8.7-5")
async def test_a_checkpoint_replaces_what_a_step_returned() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        given = {"workflow_id": paused["workflow_id"], "checkpoint": {"wait": {"waited": False}}}
        refused = await bench.send("RESUME", "/", {**given, "checkpoint": {"nap": 1}})
        assert (refused.status, refused.error["code"]) == (422, "invalid-checkpoint")
        await bench.send("RESUME", "/", given)
        await pause_until(bench, paused["workflow_id"], "completed")
        found = await bench.bench.server.part("workflows").find(paused["workflow_id"])
        assert found.rows[0].output == '{"waited":false}'


@pytest.mark.requirement("METHODS-8.6-5")
@rows(
    "fields, status, code",
    ({"workflow_id": "chain-x"}, 404, "workflow-not-found"),
    ({"workflow_id": "chain-x", "resume_at": "soon"}, 400, "invalid-time"),
    ({"workflow_id": "chain-x", "resume_at": "2001-01-01T00:00:00Z"}, 400, "invalid-time"),
)
async def test_what_cannot_be_paused_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(methods=("CHAIN", "PAUSE")) as bench:
        assert (await bench.send("PAUSE", "/", fields)).refusal == (status, code)


@pytest.mark.requirement("METHODS-8.6-5")
async def test_a_workflow_that_has_ended_or_is_paused_cannot_be_paused() -> None:
    made = Paused()
    async with keeping(*made.endpoints(), methods=("CHAIN", "PAUSE")) as bench:
        paused = await made.pause(bench)
        again = await bench.send("PAUSE", "/", {"workflow_id": paused["workflow_id"]})
        assert (again.status, again.error["code"]) == (409, "already-paused")
        await bench.send("RESUME", "/", {"workflow_id": paused["workflow_id"]})
        await pause_until(bench, paused["workflow_id"], "completed")
        ended = await bench.send("PAUSE", "/", {"workflow_id": paused["workflow_id"]})
        assert (ended.status, ended.error["code"]) == (409, "workflow-ended")


FRIEND = "b" * 64
METHODS = ("RUN", "REGISTER", "CHAIN")
ROOMS = make_endpoint(
    "FIND", "/rooms", lambda given: {"rooms": [given.get("floor", 0)]}, properties={"floor": {"type": "integer"}}
)
RUN_BOOK = make_endpoint("BOOK", "/rooms", lambda _: {"booked": True}, impact="reversible", scopes=("rooms:book",))


def square(number: int) -> dict[str, int]:
    """Square a number."""
    return {"square": number * number}


def refuse(number: int = 0) -> dict[str, int]:
    """Refuse.

    Errors:
        too_low: The number is too low.
    """
    raise Refusal("too_low", "The number is too low.")


async def hang() -> dict[str, int]:
    """Wait for ever."""
    await asyncio.Event().wait()
    return {}


def procedure(procedure_id: str, target: Any = square, **fields: Any) -> Procedure:
    return Procedure(procedure_id=procedure_id, target=target, **fields)


CHAINED = Procedure(
    procedure_id="look.up",
    steps=(
        {"name": "find", "method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "input.floor"}}},
        {"method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "find.rooms[0]"}}},
    ),
    input_schema={"type": "object", "properties": {"floor": {"type": "integer"}}, "required": ["floor"]},
)
ALL = (procedure("square"), procedure("refuse", refuse), procedure("hang", hang), CHAINED)


async def run(
    bench: StatefulBench, procedure_id: str, given: Any = None, scope: str = "activation:run", **fields: Any
) -> Any:
    body = {"procedure_id": procedure_id, **({} if given is None else {"input": given}), **fields}
    return await bench.send("RUN", "/", body, authority_scope=scope)


@pytest.mark.requirement("METHODS-8.8-2", "METHODS-8.8-5")
@pytest.mark.process
async def test_a_procedure_is_run_by_its_id_and_returns_its_output() -> None:
    async with keeping(ROOMS, methods=METHODS, procedures=ALL) as bench:
        reply = await run(bench, "square", {"number": 4})
        assert (reply.status, reply.json["result"]["status"]) == (200, "completed")
        assert reply.json["result"]["output"] == {"square": 16}
        found = (await run(bench, "look.up", {"floor": 3})).json["result"]
        assert (found["output"], found["steps"][0]["status"]) == ({"rooms": [3]}, "done")


@pytest.mark.requirement("METHODS-8.8-3")
async def test_running_takes_the_scope_and_those_of_the_procedure() -> None:
    chain = Procedure(procedure_id="chain", steps=({"method": "FIND", "path": "/rooms"},), scopes=("math:square",))
    given = (procedure("square", scopes=("math:square",)), chain)
    async with keeping(ROOMS, methods=METHODS, procedures=given) as bench:
        for name, values in (("square", {"number": 2}), ("chain", {})):
            assert (await run(bench, name, values, scope="math:square")).status == 455
            assert (await run(bench, name, values)).error["missing_scopes"] == ["math:square"]
            both = await run(bench, name, values, scope="activation:run, math:square")
            assert both.json["result"]["status"] == "completed"


@pytest.mark.requirement("METHODS-8.8-1", "METHODS-8.8-4", "METHODS-10.3-1", "CORE-4.13-2")
@pytest.mark.parametrize("text", ["rm -rf /", "square; ls", "import os", "proc-" + "0" * 32, "SQUARE", "../square"])
async def test_free_form_strings_are_never_run(text: str) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        assert (await run(bench, text)).refusal == (404, "procedure-not-found")


@pytest.mark.requirement("METHODS-8.8-4")
@pytest.mark.parametrize("given", [{"number": "4"}, {}, {"number": 4, "more": 1}, {"number": {"$expr": "2"}}])
async def test_input_that_the_procedure_does_not_take_is_refused(given: dict[str, Any]) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        assert (await run(bench, "square", given)).refusal == (422, "invalid-input")
        assert (await run(bench, "square", "ls")).status == 422


async def test_a_refusal_of_the_procedure_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        with caplog.at_level(logging.INFO):
            result = (await run(bench, "refuse", {"number": 3})).json["result"]
        assert result["status"] == "failed"
        # The route of a procedure is hidden, so that its path would help nobody.
        assert result["error"] == {"code": "too_low", "message": "The number is too low."}
        # The input is in the audit record alone, and a run without one is a warning.
        assert "number" not in caplog.text
        lines = [entry for entry in caplog.records if entry.getMessage().startswith(f"RUN 'refuse' by {AGENT}")]
        assert [entry.levelno for entry in lines] == ([] if bench.bench.server.audited else [logging.WARNING])


@pytest.mark.requirement("METHODS-8.8-4", "METHODS-8.8-6")
async def test_a_procedure_that_takes_too_long_is_answered_408() -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        assert (await run(bench, "hang", timeout=0.01)).refusal == (408, "timeout")


@pytest.mark.requirement("METHODS-10.3-2")
async def test_every_run_is_recorded_with_its_procedure_and_input() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(methods=METHODS, procedures=ALL, document=document) as bench:
        audit_id = (await run(bench, "square", {"number": 4})).header("Audit-ID")
        seen = await bench.send("INSPECT", "/", {"target": "audit", "audit_id": audit_id})
        assert seen.json["result"]["record"]["extra"]["input"] == {"procedure_id": "square", "input": {"number": 4}}


@pytest.mark.parametrize(("idempotent", "state", "runs"), [(True, "completed", 2), (False, "failed", 1)])
async def test_a_run_that_was_interrupted_is_repeated_only_if_it_is_idempotent(
    tmp_path: Path, *, idempotent: bool, state: str, runs: int
) -> None:
    begun: list[str] = []
    started, place = asyncio.Event(), str(tmp_path / "bespeak.db")

    async def work(part: str) -> dict[str, str]:
        """Work on a part; the first time, for ever."""
        begun.append(part)
        started.set()
        if len(begun) == 1:
            await asyncio.Event().wait()
        return {"part": part}

    given = {"methods": METHODS, "procedures": (procedure("work", work, idempotent=idempotent),)}
    async with keeping(store=open_store(place, role="sole"), **given) as bench:
        waiting = asyncio.create_task(run(bench, "work", {"part": "a"}))
        await started.wait()
        [workflow_id] = bench.bench.server.part("workflows")._driving
    waiting.cancel()
    async with keeping(store=open_store(place, role="sole"), **given) as bench:
        found = await bench.bench.server.part("workflows").wait(workflow_id, 20.0)
        assert (found.record.state, begun) == (state, ["a"] * runs)
        assert ("interrupted" in found.rows[0].output) is not idempotent


def test_the_id_of_a_workflow_has_a_form_of_its_own() -> None:
    assert is_workflow_id(f"chain-{'0' * 32}")
    assert not is_workflow_id("trip-7")


@rows(
    "given, status, code",
    ({"workflow_id": f"chain-{'0' * 32}"}, 404, "workflow-not-found"),
    ({"workflow_id": "trip-7"}, 422, "invalid-resumption-nonce"),
)
async def test_what_is_not_there_is_not_found(given: dict[str, str], status: int, code: str) -> None:
    async with keeping(methods=("CHAIN",)) as bench:
        assert (await bench.send("RESUME", "/", given)).refusal == (status, code)


@pytest.mark.requirement("METHODS-8.7-4")
async def test_a_workflow_whose_time_ran_out_while_it_was_paused_is_408() -> None:
    workflow_id = "chain-" + "0" * 32
    spec = Spec(method="CHAIN", steps=(StepSpec("BOOK", "/rooms"),), authority=Authority(AGENT, (), {}), deadline=1.0)
    async with keeping(methods=("CHAIN", "PAUSE")) as bench:
        await bench.store.do(PutRecord(workflow_id, WORKFLOW, AGENT, PAUSED, encode(spec).decode()))
        assert (await bench.send("RESUME", "/", {"workflow_id": workflow_id})).refusal == (408, "workflow-expired")
        assert (await bench.send("RESUME", "/", {"workflow_id": workflow_id})).status == 409
