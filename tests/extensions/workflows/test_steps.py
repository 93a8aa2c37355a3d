"""One language of steps: together, for each element, delays, approvals, lists in lists, shapes of outputs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.web import always, serving
from tests.cases import rows
from tests.extensions.messages.parts import letter_of
from tests.service import AGENT, echo, make_endpoint
from tests.state.store.conftest import place, shared_place
from tests.stateful import StatefulBench, keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Refusal
from bespeak.contract.procedure import Procedure
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.workflows.engine import Workflow
from bespeak.extensions.workflows.spec import Spec, StepSpec, decode, encode, repeat_commands
from bespeak.extensions.workflows.start import collect_texts, read_steps
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, DecideCase, ListCases
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue
from bespeak.state.store.settings import open_store

__all__ = ["place", "shared_place"]

pytestmark = pytest.mark.anyio

ROOM = {"room": {"type": ["string", "integer"]}}
METHODS = ("CHAIN", "BATCH", "RUN", "REGISTER", "QUOTE", "PAUSE", "CANCEL")


class Hotel:
    """Endpoints that note what they are called with; what is taken refuses, and what is slow waits."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.failing = 0  # number of times for which calling a porter fails
        self.begun = asyncio.Event()
        self.release = asyncio.Event()

    def note(self, context: Context) -> None:
        self.called.append(" ".join([context.method, *map(str, context.input.values())]))

    def book(self, context: Context) -> dict[str, Any]:
        self.note(context)
        if context.input.get("room") == "taken":
            raise Refusal("room_taken", "The room is taken.")
        return {"id": f"res-{context.input.get('room')}"}

    def find(self, context: Context) -> dict[str, Any]:
        self.note(context)
        return {"rooms": [1, 2, 3], "free": True, "at": "2099-01-01T00:00:00Z"}

    async def call(self, context: Context) -> dict[str, Any]:
        self.note(context)
        if self.failing:
            self.failing -= 1
            raise ValueError("nobody answers")
        self.begun.set()
        await self.release.wait()
        return {}

    def endpoints(self) -> tuple[Endpoint, ...]:
        changes: dict[str, Any] = {"impact": "reversible", "properties": ROOM}
        return (
            make_endpoint("FIND", "/rooms", self.find),
            make_endpoint("BOOK", "/rooms", self.book, errors=("room_taken",), **changes),
            make_endpoint("CANCEL", "/rooms", self.book, **changes),
            make_endpoint("AWAIT", "/porter", self.call, **changes),
            make_endpoint("ECHO", "/words", echo, properties={"word": {}}, output={"word": {}}),
        )


@asynccontextmanager
async def hotel(**fields: Any) -> AsyncIterator[tuple[Hotel, StatefulBench]]:
    made = Hotel()
    async with keeping(*made.endpoints(), methods=METHODS, **fields) as bench:
        yield made, bench


def book(room: Any, **more: Any) -> dict[str, Any]:
    return {"method": "BOOK", "path": "/rooms", "parameters": {"room": room}, **more}


def undo(name: str) -> dict[str, Any]:
    return {"method": "CANCEL", "path": "/rooms", "parameters": {"room": {"$from": f"{name}.id"}}}


FIND = {"name": "search", "method": "FIND", "path": "/rooms"}
AWAIT = {"method": "AWAIT", "path": "/porter"}
EACH = {"items": {"$from": "search.rooms"}, "call": book({"$from": "item"})}


async def chain(bench: StatefulBench, *steps: dict[str, Any], **fields: Any) -> Any:
    headers = fields.pop("headers", {})
    body = {"steps": list(steps), "context_propagation": True, **fields}
    return await bench.send("CHAIN", "/", body, **headers)


def result(reply: Any) -> Any:
    assert reply.status in (200, 202), reply.json
    return reply.json["result"]


async def until(bench: StatefulBench, workflow_id: str, *states: str) -> Workflow:
    async with asyncio.timeout(10):
        while True:
            found: Workflow = await bench.bench.server.part("workflows").find(workflow_id)
            if found.record.state in states:
                return found
            await asyncio.sleep(0.01)


async def wake(bench: StatefulBench, workflow_id: str, state: str) -> None:
    """Let the time come at which a workflow is due."""
    await bench.store.do(ChangeRecord(workflow_id, ("workflow",), (state,), state, delay=0.0))


async def test_steps_together_are_known_afterwards_by_their_names() -> None:
    async with hotel() as (made, bench):
        both = {"name": "both", "together": [book(1, name="one"), book(2, name="two")]}
        words = {"a": {"$from": "one.id"}, "b": {"$from": "both[1].id"}}
        reply = result(await chain(bench, both, {"method": "ECHO", "path": "/words", "parameters": {"word": words}}))
        assert reply["output"] == {"word": {"a": "res-1", "b": "res-2"}}
        first = reply["steps"][0]
        assert (first["kind"], first["status"], first["output"]) == (
            "together",
            "done",
            [{"id": "res-1"}, {"id": "res-2"}],
        )
        assert [one["status"] for one in first["steps"]] == ["done", "done"]
        assert sorted(made.called[:2]) == ["BOOK 1", "BOOK 2"]


async def test_all_steps_together_end_before_the_first_failure_in_order_counts() -> None:
    async with hotel() as (made, bench):
        steps = [
            book(1, name="a", undo=undo("a")),
            book("taken"),
            {"method": "ECHO", "path": "/words", "parameters": {"word": {"$from": "search.x"}}},
        ]
        reply = result(await chain(bench, FIND, {"together": steps}, book(9)))
        assert (reply["status"], [one["status"] for one in reply["steps"]]) == ("failed", ["done", "failed", "pending"])
        assert reply["steps"][1]["error"]["code"] == "room_taken"
        assert [one["status"] for one in reply["steps"][1]["steps"]] == ["undone", "failed", "failed"]
        assert made.called[-1] == "CANCEL res-1"


async def test_a_list_of_an_earlier_step_is_gone_through() -> None:
    async with hotel() as (made, bench):
        each = {"name": "all", "for_each": EACH, "output": {"count": 3, "first": {"$from": "all[0].output.id"}}}
        reply = result(await chain(bench, FIND, each, output={"rooms": {"$from": "all.first"}}))
        assert made.called == ["FIND", "BOOK 1", "BOOK 2", "BOOK 3"]
        assert reply["steps"][1]["output"] == {"count": 3, "first": "res-1"}
        assert [(one["element"], one["output"]["id"]) for one in reply["steps"][1]["steps"]] == [
            (0, "res-1"),
            (1, "res-2"),
            (2, "res-3"),
        ]
        assert reply["output"] == {"rooms": "res-1"}


@rows(
    "each, code",
    ({**EACH, "max_items": 2}, "too-many-elements"),
    ({**EACH, "items": {"$from": "search.free"}}, "not-a-list"),
    ({**EACH, "items": {"$from": "search.nothing"}}, "invalid-reference"),
)
async def test_a_list_that_cannot_be_gone_through_fails_before_its_first_element(
    each: dict[str, Any], code: str
) -> None:
    async with hotel() as (made, bench):
        reply = result(await chain(bench, FIND, {"for_each": each}))
        assert (reply["status"], reply["steps"][1]["error"]["code"], made.called) == ("failed", code, ["FIND"])


async def test_elements_run_side_by_side_and_those_that_fail_may_be_left_out() -> None:
    async with hotel() as (made, bench):
        steps = [{**book({"$from": "room"}, name="kept"), "undo": undo("kept")}, book({"$from": "room"}, name="again")]
        each = {"items": ["1", "taken", "3"], "as": "room", "at_once": 3, "steps": steps[::-1]}
        reply = result(await chain(bench, {"name": "all", "for_each": each, "on_failure": "skip"}))
        assert [one["item"] for one in reply["output"]] == ["1", "3"]
        assert reply["status"] == "completed"
        each = {"items": ["1"], "as": "room", "steps": [steps[0], book("taken")]}
        left = result(await chain(bench, {"for_each": each, "on_failure": "skip"}, book(7)))
        assert (left["status"], left["steps"][0]["output"]) == ("completed", [])
        assert made.called[-2:] == ["CANCEL res-1", "BOOK 7"]  # what the element did is undone


async def test_lists_are_inside_each_other_and_undone_in_reverse_order() -> None:
    async with hotel() as (made, bench):
        inner = {
            "method": "BATCH",
            "parameters": {"calls": [book(3, name="c", undo=undo("c"))], "execution_mode": "sequential"},
        }
        outer = {
            "name": "outer",
            "method": "CHAIN",
            "parameters": {
                "steps": [book(2, name="b", undo=undo("b")), inner, book(4, name="d", compensate=undo("d"))]
            },
        }
        done = result(await chain(bench, book(1, name="a", undo=undo("a")), outer, {**FIND, "name": "last"}))
        assert (done["status"], done["steps"][1]["output"]) == ("completed", {"id": "res-4"})
        assert done["steps"][1]["steps"][1]["steps"][0]["output"] == {"id": "res-3"}
        made.called.clear()
        failed = result(await chain(bench, book(1, name="a", undo=undo("a")), outer, book("taken")))
        assert failed["status"] == "failed"
        assert made.called[-4:] == ["CANCEL res-4", "CANCEL res-3", "CANCEL res-2", "CANCEL res-1"]


async def test_elements_are_undone_in_reverse_order_with_what_they_have_returned() -> None:
    async with hotel() as (made, bench):
        each = {**EACH, "call": book({"$from": "item"}, name="one", undo=undo("one"))}
        reply = result(await chain(bench, FIND, {"for_each": each}, book("taken")))
        assert reply["status"] == "failed"
        assert made.called[-3:] == ["CANCEL res-3", "CANCEL res-2", "CANCEL res-1"]


async def test_a_list_that_is_skipped_is_undone_and_the_rest_goes_on() -> None:
    async with hotel() as (made, bench):
        inner = {"steps": [book(1, name="a", undo=undo("a")), book("taken")]}
        skipped = {"method": "CHAIN", "parameters": inner, "on_failure": "skip"}
        reply = result(await chain(bench, skipped, book(2)))
        assert (reply["status"], [one["status"] for one in reply["steps"]]) == ("completed", ["skipped", "done"])
        assert made.called == ["BOOK 1", "BOOK taken", "CANCEL res-1", "BOOK 2"]


async def test_a_batch_inside_a_chain_may_succeed_in_part() -> None:
    async with hotel() as (_, bench):
        inner = {"calls": [book(1), book("taken")], "partial_success": True}
        reply = result(await chain(bench, {"name": "some", "method": "BATCH", "parameters": inner}))
        assert (reply["status"], reply["output"]) == ("completed", [{"id": "res-1"}, None])
        outer = await bench.send(
            "BATCH", "/", {"calls": [{"method": "CHAIN", "parameters": {"steps": [book(1), book(2)]}}]}
        )
        assert result(outer)["results"][0]["output"] == {"id": "res-2"}


@pytest.mark.process
async def test_a_list_whose_condition_is_false_is_skipped_with_all_its_steps() -> None:
    async with hotel() as (made, bench):
        steps = [
            FIND,
            {"together": [book(1)], "when": "!steps.search.free"},
            {
                "for_each": {
                    "items": {"$expr": "steps.search.rooms.filter(r, r > 1)"},
                    "steps": [{**book({"$expr": "item * 10"}), "when": "item > 2"}],
                }
            },
        ]
        reply = result(await chain(bench, *steps))
        assert [one["status"] for one in reply["steps"]] == ["done", "skipped", "done"]
        assert made.called == ["FIND", "BOOK 30"]
        assert [one["output"] for one in reply["output"]] == [None, {"id": "res-30"}]


@pytest.mark.process
async def test_outputs_get_a_shape_by_references_and_expressions() -> None:
    async with hotel() as (_, bench):
        shaped = {
            **FIND,
            "output": {"count": {"$expr": "size(steps.search.rooms)"}, "first": {"$from": "search.rooms[0]"}},
        }
        whole = {"twice": {"$expr": "steps.search.count * 2"}, "booked": {"$from": "2.id"}}
        reply = result(await chain(bench, shaped, book({"$from": "search.first"}), output=whole))
        assert reply["steps"][0]["output"] == {"count": 3, "first": 1}
        assert reply["output"] == {"twice": 6, "booked": "res-1"}


async def test_an_output_without_a_value_fails_its_step_and_not_the_whole() -> None:
    async with hotel() as (_, bench):
        reply = result(await chain(bench, book(1, name="a", undo=undo("a")), output={"x": {"$from": "a.none"}}))
        assert (reply["status"], reply["output"], reply["error"]["code"]) == (
            "completed",
            {"id": "res-1"},
            "invalid-reference",
        )
        failed = result(await chain(bench, book(1, name="a", undo=undo("a"), output={"x": {"$from": "a.none"}})))
        assert (failed["status"], failed["steps"][0]["status"]) == ("failed", "undone")


async def test_a_delay_leaves_nothing_in_memory_until_its_time() -> None:
    async with hotel() as (made, bench):
        reply = await chain(bench, book(1), {"delay": 3600}, book(2))
        chain_id = result(reply)["chain_id"]
        assert (reply.status, result(reply)["status"], made.called) == (202, "sleeping", ["BOOK 1"])
        assert bench.bench.server.part("workflows").driven == 0
        record = (await until(bench, chain_id, "sleeping")).record
        assert record.due is not None
        assert 3500 < record.due - time.time() <= 3600
        await wake(bench, chain_id, "sleeping")  # before its time: it sleeps on
        await until(bench, chain_id, "sleeping")
        assert made.called == ["BOOK 1"]


async def test_a_delay_ends_at_a_time_that_a_step_has_returned() -> None:
    async with hotel() as (made, bench):
        sleeping = result(await chain(bench, FIND, {"delay": {"until": {"$from": "search.at"}}}, timeout=366 * 86400))
        assert sleeping["status"] == "sleeping"
        past = {"delay": {"until": "2001-01-01T00:00:00Z"}}
        assert result(await chain(bench, past, book(1)))["status"] == "completed"
        wrong = result(await chain(bench, FIND, {"delay": {"until": {"$from": "search.free"}}}))
        assert (wrong["status"], wrong["steps"][1]["error"]["code"]) == ("failed", "invalid-time")
        assert made.called == ["FIND", "BOOK 1", "FIND"]


async def decide(bench: StatefulBench, state: str) -> None:
    [case] = await bench.store.read(ListCases())
    await bench.store.do(DecideCase(case.case_id, state, "desk", "att-1", kinds=(case.kind,)))


@pytest.mark.parametrize(
    ("decision", "policy", "end", "called"),
    [
        (ACCEPTED, "abort", "completed", ["BOOK 1", "BOOK 2"]),
        (REJECTED, "abort", "failed", ["BOOK 1", "CANCEL res-1"]),
        (REJECTED, "skip", "completed", ["BOOK 1", "BOOK 2"]),
    ],
)
async def test_an_approval_waits_for_a_person(decision: str, policy: str, end: str, called: list[str]) -> None:
    async with hotel() as (made, bench):
        asked = {"approve": {"question": "May it cost 900?", "who": "operator", "within": 60}, "on_failure": policy}
        waiting = result(await chain(bench, book(1, name="a", undo=undo("a")), asked, book(2)))
        assert (waiting["status"], waiting["steps"][1]["status"]) == ("waiting", "waiting")
        assert "May it cost 900?" in (await bench.store.read(ListCases()))[0].subject
        await decide(bench, decision)
        ended = await until(bench, waiting["chain_id"], "completed", "failed")
        assert (ended.record.state, made.called) == (end, called)


async def test_an_approval_of_somebody_unknown_fails_with_the_names_of_people() -> None:
    async with hotel() as (made, bench):
        asked = {"approve": {"question": "Go on?", "who": "nobody"}}
        reply = result(await chain(bench, asked, book(1)))
        error = reply["steps"][0]["error"]
        assert (reply["status"], error["code"], error["people"]) == ("failed", "unknown-recipient", ["operator"])
        assert made.called == []


async def test_an_approval_that_nobody_gives_in_time_fails() -> None:
    async with hotel() as (made, bench):
        asked = {"approve": {"question": "Go on?", "within": 1}}
        waiting = result(await chain(bench, asked, book(1)))
        await until(bench, waiting["chain_id"], "failed")
        reply = (await until(bench, waiting["chain_id"], "failed")).rows
        assert (reply[0].state, "wait-timeout" in reply[0].output, made.called) == ("failed", True, [])


async def test_a_step_is_tried_as_often_as_it_says() -> None:
    async with hotel() as (made, bench):
        made.failing, made.release = 2, asyncio.Event()
        made.release.set()
        reply = result(await chain(bench, {**AWAIT, "retry": {"attempts": 3, "delay": 0}}))
        assert (reply["status"], reply["steps"][0]["attempts"]) == ("completed", 3)
        made.failing = 2
        failed = result(
            await chain(bench, {**AWAIT, "retry": {"attempts": 2, "delay": 0}, "on_failure": "skip"}, book(1))
        )
        assert [one["status"] for one in failed["steps"]] == ["skipped", "done"]


async def test_a_step_that_takes_too_long_fails_and_what_was_done_is_undone() -> None:
    async with hotel() as (made, bench):
        reply = result(await chain(bench, book(1, name="a", undo=undo("a")), {**AWAIT, "timeout": 0.05}))
        assert (reply["status"], [one["status"] for one in reply["steps"]]) == ("failed", ["undone", "failed"])
        assert (reply["steps"][1]["code"], reply["steps"][1]["error"]["code"]) == (408, "timeout")
        assert made.called == ["BOOK 1", "AWAIT", "CANCEL res-1"]


@pytest.mark.requirement("METHODS-8.1-6", "METHODS-8.2-4", "METHODS-8.2-5")
@pytest.mark.parametrize("method", ["CHAIN", "BATCH"])
async def test_a_step_that_ran_when_the_time_was_over_has_an_unknown_outcome(method: str) -> None:
    async with hotel() as (made, bench):
        steps = [book(1, name="a", undo=undo("a")), {"together": [book(2), AWAIT]}, book(3)]
        body = {"steps": steps} if method == "CHAIN" else {"calls": steps, "execution_mode": "sequential"}
        reply = await bench.send(method, "/", {**body, "timeout": 0.4})
        assert reply.refusal == (408, "timeout")
        told = reply.error["steps" if method == "CHAIN" else "results"]
        assert [one["status"] for one in told] == ["undone", "failed", "pending"]
        inside = told[1]["steps"]
        assert [one["status"] for one in inside] == ["done", "failed"]
        assert (told[1]["error"]["code"], inside[1]["error"]["code"]) == ("interrupted", "interrupted")
        assert made.called[-1] == "CANCEL res-1"


async def test_procedures_plans_and_registered_steps_speak_the_same_language() -> None:
    each = {"name": "all", "for_each": {"items": {"$from": "input.rooms"}, "call": book({"$from": "item"})}}
    shape = {"ids": {"$from": "all[0].output.id"}}
    owned = Procedure(procedure_id="fill", steps=(each,), output=shape)
    async with hotel(procedures=(owned,)) as (_, bench):
        given = {"rooms": [4, 5]}
        ran = await bench.send("RUN", "/", {"procedure_id": "fill", "input": given}, authority_scope="activation:run")
        assert result(ran)["output"] == {"ids": "res-4"}
        planned = await bench.send("EXECUTE", "/", {"plan": {"steps": [each], "result": shape}, "parameters": given})
        assert result(planned)["output"] == {"ids": "res-4"}
        data = {"steps": [each], "output": shape}
        held = result(await bench.send("REGISTER", "/", {"entity_type": "procedure", "data": data}))
        await decide(bench, ACCEPTED)
        own = await bench.send(
            "RUN", "/", {"procedure_id": held["entity_id"], "input": given}, authority_scope="activation:run"
        )
        assert result(own)["output"] == {"ids": "res-4"}


def nest(depth: int) -> dict[str, Any]:
    return book(1) if depth == 0 else {"together": [nest(depth - 1)]}


@rows(
    "steps, said",
    ([nest(3)], "more than 3 deep"),
    ([{"method": "CHAIN", "parameters": {"steps": [nest(2)]}}], "more than 3 deep"),
    ([{"together": [book(1)] * 100}] * 10, "1000 steps"),
    ([{"for_each": {"items": [], "max_items": 10_000, "call": book(1)}}] * 2, "10,000 calls"),
    ([{}], "exactly one of"),
    ([{**book(1), "delay": 3}], "exactly one of"),
    ([{"for_each": {"items": []}}], "exactly one of `call` and `steps`"),
    ([{"delay": 3, "undo": undo("a")}], "does not take 'undo'"),
    ([{"together": [book(1)], "retry": {"attempts": 2}}], "does not take 'retry'"),
    ([{**book(1), "undo": undo("1"), "compensate": undo("1")}], "mean the same"),
    ([{"together": [book(1)], "on_failure": "retry"}], "is for calls"),
    ([{"method": "CHAIN", "parameters": {"steps": [book(1)], "timeout": 3}}], "steps/0/parameters"),
    ([FIND, {"together": [book(1, name="a"), book({"$from": "a.id"})]}], "steps/1/together/1"),
    ([{"together": [book(1, name="a"), book(2, name="a")]}], "steps/0/together/1"),
    (
        [{"method": "CHAIN", "parameters": {"steps": [book(1, name="a")]}}, book({"$from": "a.id"})],
        "not an earlier step",
    ),
    ([{"for_each": {"items": [], "as": "x", "call": book({"$from": "item"})}}], "steps/0/for_each/call/0"),
    ([FIND, {"for_each": {"items": [], "as": "search", "call": book(1)}}], "used already"),
    ([{"together": [{"method": "FIND", "path": "/cellar"}]}], "1/together/1"),
    ([{"together": [{"method": "RUN", "parameters": {"procedure_id": "x"}}]}], "which runs other calls"),
    ([{**book(1), "undo": {"method": "CHAIN", "parameters": {"steps": [book(1)]}}}], "which runs other calls"),
)
async def test_steps_that_cannot_run_are_refused_with_their_place(steps: list[dict[str, Any]], said: str) -> None:
    async with hotel() as (made, bench):
        reply = await chain(bench, *steps)
        assert (reply.status, said in reply.error["message"]) == (422, True), reply.error["message"]
        assert reply.error["step"] >= 1
        assert made.called == []


async def test_a_quote_counts_the_calls_of_lists_inside_others() -> None:
    async with hotel() as (_, bench):
        each = {"for_each": {"items": {"$from": "search.rooms"}, "max_items": 20, "call": book(1)}}
        steps = [FIND, each, {"together": [book(1), {"delay": 3}]}]
        quoted = await bench.send("QUOTE", "/", {"method": "CHAIN", "path": "/", "parameters": {"steps": steps}})
        assert result(quoted)["estimated_cost"]["calls"] == {"min": 2, "expected": 3, "max": 22}


@pytest.mark.requirement("CORE-6.1-8")
@rows(
    "policy, end, states",
    ("abort", "failed", ["undone", "done", "failed"]),
    ("skip", "completed", ["done", "done", "skipped"]),
)
async def test_calls_of_steps_are_added_up_against_the_budget(policy: str, end: str, states: list[str]) -> None:
    async with hotel() as (made, bench):
        steps = [book(1, name="a", undo=undo("a")), book(2), book(3)]
        done = result(await chain(bench, *steps, on_failure=policy, headers={"budget_limit": "calls=2"}))
        assert (done["status"], [one["status"] for one in done["steps"]]) == (end, states)
        assert (done["steps"][2]["code"], done["steps"][2]["error"]["exceeded"]) == (456, ["calls"])
        assert "BOOK 3" not in made.called  # and what undoes is not limited
        enough = result(await chain(bench, *steps, headers={"budget_limit": "calls=3"}))
        assert enough["status"] == "completed"


@pytest.mark.requirement("CORE-6.1-8")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_calls_of_a_batch_and_of_lists_inside_it_are_added_up(mode: str) -> None:
    async with hotel() as (made, bench):
        calls = [book(1), {"together": [book(2), book(3)]}]
        body = {"calls": calls, "execution_mode": mode, "partial_success": True}
        reply = result(await bench.send("BATCH", "/", body, budget_limit="calls=2"))
        assert (reply["status"], [one["status"] for one in reply["results"]]) == ("partial", ["done", "failed"])
        assert reply["results"][1]["error"]["code"] == "budget-exceeded"
        assert len(made.called) == 2


@pytest.mark.requirement("CORE-6.1-8")
async def test_calls_before_a_delay_and_every_attempt_count_against_the_budget() -> None:
    async with hotel() as (made, bench):
        made.failing = 1
        made.release.set()
        tried = {**AWAIT, "retry": {"attempts": 2, "delay": 0}}
        sleeping = result(await chain(bench, tried, {"delay": 0.6}, book(1), headers={"budget_limit": "calls=2"}))
        ended = await until(bench, sleeping["chain_id"], "completed", "failed")
        assert (ended.record.state, made.called) == ("failed", ["AWAIT", "AWAIT"])
        assert [row.code for row in ended.rows if row.state == "failed"] == [456]


@pytest.mark.parametrize("last", [AWAIT, {"together": [AWAIT, book(2)]}, {"for_each": {"items": [1], "call": AWAIT}}])
@rows("method, known", ("CHAIN", False), ("CHAIN", True), ("BATCH", True))
async def test_a_list_that_is_cancelled_during_its_last_step_is_undone(
    method: str, last: dict[str, Any], *, known: bool
) -> None:
    async with hotel() as (made, bench):
        steps = [book(1, name="a", undo=undo("a")), last]
        body = {"steps": steps} if method == "CHAIN" else {"calls": steps, "execution_mode": "sequential"}
        waiting = asyncio.create_task(bench.send(method, "/", body))
        await made.begun.wait()
        [workflow_id] = bench.bench.server.part("workflows")._driving
        assert (await bench.send("CANCEL", "/", {"target_id": workflow_id})).status == 202
        while known and bench.bench.server.part("workflows")._journals[workflow_id].state != "cancelling":
            await asyncio.sleep(0)
        made.release.set()
        ended = await until(bench, workflow_id, "completed", "failed", "cancelled")
        assert (ended.record.state, made.called[-1]) == ("cancelled", "CANCEL res-1")
        await waiting


async def test_every_store_keeps_lists_in_lists(place: str) -> None:
    async with hotel(store=open_store(place)) as (made, bench):
        inside = {
            "items": {"$from": "search.rooms"},
            "at_once": 2,
            "steps": [book({"$from": "item"}, name="one"), {"delay": 0.8}],
        }
        waits = {"together": [{"for_each": inside}, {"approve": {"question": "Go on?"}}]}
        begun = result(
            await chain(bench, FIND, waits, book(9, output={"x": {"$from": "3.id"}}), output={"$from": "3.x"})
        )
        assert begun["status"] == "waiting"
        await decide(bench, ACCEPTED)
        ended = await until(bench, begun["chain_id"], "completed", "failed")
        assert [row.output for row in ended.rows if row.number == 0] == ['"res-9"']
        assert sorted(made.called) == ["BOOK 1", "BOOK 2", "BOOK 3", "BOOK 9", "FIND"]


async def test_another_process_goes_on_in_the_middle_of_a_list(shared_place: str) -> None:
    called: list[tuple[str, str, int]] = []
    begun, release = asyncio.Event(), asyncio.Event()

    def serving(place: str) -> Endpoint:
        async def book_room(context: Context) -> dict[str, Any]:
            called.append((place, context.request.headers["idempotency-key"][-20:], context.input["room"]))
            if place == "first" and context.input["room"] == 2:
                begun.set()
                await release.wait()
            return {"id": f"res-{context.input['room']}"}

        return make_endpoint("BOOK", "/rooms", book_room, properties=ROOM, impact="reversible")

    async with (
        keeping(serving("first"), store=open_store(shared_place), methods=METHODS) as one,
        keeping(serving("second"), store=open_store(shared_place), methods=METHODS) as other,
    ):
        each = {"name": "all", "for_each": {"items": [1, 2, 3], "call": book({"$from": "item"})}}
        waiting = asyncio.create_task(chain(one, each))
        await begun.wait()
        [workflow_id] = one.bench.server.part("workflows")._driving
        taken = ChangeRecord(workflow_id, ("workflow",), ("running",), "running", delay=-1.0)
        claimed = await other.store.do(taken, ClaimDue("workflow", 1, 30.0))
        await other.bench.server.part("workflows").take_over(claimed[1])
        ended = await until(other, workflow_id, "completed", "failed")
        release.set()
        reply = result(await waiting)
        assert (ended.record.state, reply["status"]) == ("completed", "completed")
        assert [one["output"]["id"] for one in reply["output"]] == ["res-1", "res-2", "res-3"]
        assert [(who, room) for who, _, room in called] == [("first", 1), ("first", 2), ("second", 2), ("second", 3)]
        assert called[1][1] == called[2][1]  # the other side can tell that it is the same deed


async def test_a_failed_list_is_repeated_from_the_element_that_failed() -> None:
    async with hotel() as (made, bench):
        made.failing = 1
        made.release.set()
        calls = {"items": [1, 2], "steps": [book({"$from": "item"}), AWAIT]}
        failed = result(await chain(bench, {"for_each": calls}))
        assert failed["status"] == "failed"
        workflows = bench.bench.server.part("workflows")
        found = await workflows.find(failed["chain_id"])
        commands = repeat_commands(found.record, found.rows)
        assert not isinstance(commands, str)
        await bench.store.do(*commands)
        await until(bench, failed["chain_id"], "completed")
        assert made.called == ["BOOK 1", "AWAIT", "AWAIT", "BOOK 2", "AWAIT"]


async def test_a_checkpoint_replaces_the_shape_of_an_output() -> None:
    async with hotel() as (made, bench):
        shaped = {**FIND, "output": {"first": {"$from": "search.rooms[0]"}}}
        asked = {"approve": {"question": "Go on?"}}
        waiting = result(await chain(bench, shaped, asked, book({"$from": "search.first"})))
        await bench.send("PAUSE", "/", {"workflow_id": waiting["chain_id"]})
        await decide(bench, ACCEPTED)
        body = {"workflow_id": waiting["chain_id"], "checkpoint": {"search": {"first": 7}}}
        assert result(await bench.send("RESUME", "/", body))["overridden"] == 1
        await until(bench, waiting["chain_id"], "completed")
        assert made.called == ["FIND", "BOOK 7"]


async def test_a_callback_is_verified_before_anything_begins() -> None:
    async with hotel() as (made, bench):
        for method, body in (("CHAIN", {"steps": [book(1)]}), ("BATCH", {"calls": [book(1)]})):
            refused = await bench.send(method, "/", {**body, "callback": "https://nobody.example/hook"})
            assert (refused.status, refused.error["code"]) in {(422, "callback-refused"), (403, "address-not-listed")}
        assert made.called == []


@rows("method, end", *((method, end) for method in ("CHAIN", "BATCH") for end in ("completed", "failed", "cancelled")))
async def test_a_callback_is_told_the_end_once(method: str, end: str) -> None:
    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    async with serving(always(204), tls=False) as web, hotel(document=document) as (made, bench):
        steps = (*read((book(1), AWAIT, book("taken" if end == "failed" else 2))),)
        authority = Authority(AGENT, (), {"agent-id": AGENT})
        call = restore_call(authority, bench.bench.server, method)
        assert isinstance(call, RoutedCall)
        spec = Spec(method, steps, authority, time.time() + 60, callback=f"http://127.0.0.1:{web.port}/")
        workflow_id = await bench.bench.server.part("workflows").begin(call, spec)
        await made.begun.wait()
        if end == "cancelled":
            assert (await bench.send("CANCEL", "/", {"target_id": workflow_id})).status == 202
        made.release.set()
        await until(bench, workflow_id, end)
        async with asyncio.timeout(20):
            while not web.asked:
                await asyncio.sleep(0.005)
    told = [letter_of(asked)["content"] for asked in web.asked]
    assert [(one["workflow_id"], one["status"]) for one in told] == [(workflow_id, end)]


def read(steps: Sequence[dict[str, Any]]) -> tuple[StepSpec, ...]:
    found = read_steps(list(steps))
    assert not isinstance(found, Fault)
    return found


async def test_a_callback_is_told_by_the_process_that_has_taken_over(shared_place: str) -> None:
    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    made, again = Hotel(), Hotel()
    again.release.set()
    async with (
        serving(always(204), tls=False) as web,
        keeping(*made.endpoints(), store=open_store(shared_place), methods=METHODS, document=document) as one,
        keeping(*again.endpoints(), store=open_store(shared_place), methods=METHODS, document=document) as other,
    ):
        authority = Authority(AGENT, (), {"agent-id": AGENT})
        call = restore_call(authority, one.bench.server, "CHAIN")
        assert isinstance(call, RoutedCall)
        spec = Spec("CHAIN", read([AWAIT]), authority, time.time() + 60, callback=f"http://127.0.0.1:{web.port}/")
        workflow_id = await one.bench.server.part("workflows").begin(call, spec)
        await made.begun.wait()
        taken = ChangeRecord(workflow_id, ("workflow",), ("running",), "running", delay=-1.0)
        claimed = await other.store.do(taken, ClaimDue("workflow", 1, 30.0))
        await other.bench.server.part("workflows").take_over(claimed[1])
        await until(other, workflow_id, "completed")
        made.release.set()
        async with asyncio.timeout(20):
            while not web.asked or one.bench.server.part("workflows").driven:
                await asyncio.sleep(0.005)
    # A server that stops while it delivers leaves the posting to the other, under the same id.
    told = [letter_of(asked) for asked in web.asked]
    assert {(one["posting_id"], one["content"]["status"]) for one in told} == {(f"posting-{workflow_id}", "completed")}


WORDS = st.sampled_from(
    ["method", "path", "parameters", "name", "together", "for_each", "items", "call", "steps", "delay"]
)
MORE = st.sampled_from(
    ["until", "approve", "question", "retry", "attempts", "undo", "output", "$from", "$expr", "when"]
)
TEXTS = st.sampled_from(["BOOK", "CHAIN", "BATCH", "/rooms", "/", "a", "1", "item", "input.x", "a.b[0]", "1 > 2", ""])
VALUES = st.none() | st.booleans() | st.integers(-1, 20_000) | TEXTS
DATA = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | MORE, inner, max_size=4)
)
CALLS = st.fixed_dictionaries({"method": st.just("BOOK"), "parameters": st.dictionaries(WORDS, DATA, max_size=2)})


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return steps that are nearly right, with others inside."""
    lists = st.lists(inner, max_size=3)
    return (
        st.fixed_dictionaries({"together": lists})
        | st.fixed_dictionaries({"for_each": st.fixed_dictionaries({"items": DATA, "steps": lists})})
        | st.fixed_dictionaries({"method": st.just("CHAIN"), "parameters": st.fixed_dictionaries({"steps": lists})})
    )


@given(st.lists(st.recursive(CALLS | DATA, wrapped, max_leaves=8), max_size=4) | DATA)
def test_any_data_is_a_list_of_steps_or_has_a_finding_with_its_place(data: Any) -> None:
    steps = read_steps(data)
    if isinstance(steps, Fault):
        assert steps.at.startswith("steps")
        return
    spec = Spec(method="CHAIN", steps=steps, authority=Authority(AGENT, (), {}), deadline=1.0)
    assert decode(encode(spec)) == spec
    found = collect_texts(steps, propagates=True, has_input=True)
    assert not isinstance(found, Fault) or found.at.startswith("steps/")
