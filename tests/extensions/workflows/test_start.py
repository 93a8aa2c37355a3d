"""What is checked before a workflow begins, and the calls that it would make."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.compositions import compose, given, recipe, step
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.confirmation import ListedCall
from bespeak.contract.procedure import Procedure
from bespeak.contract.recipe import Compensation, Condition
from bespeak.extensions.workflows.methods import list_calls
from bespeak.extensions.workflows.procedures import release
from bespeak.extensions.workflows.spec import StepSpec
from bespeak.extensions.workflows.start import collect_texts
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.call import Call
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, DecideCase, ListCases

pytestmark = pytest.mark.anyio


def check(*steps: dict[str, Any], **fields: Any) -> Fault | None:
    given = tuple(msgspec.convert({"method": "FIND", **step}, StepSpec) for step in steps)
    found = collect_texts(given, **fields)
    return found if isinstance(found, Fault) else None


def refers(to: str) -> dict[str, Any]:
    return {"parameters": {"x": {"$from": to}}}


def test_earlier_steps_may_be_used_by_name_and_number() -> None:
    assert (
        check({"name": "a"}, {**refers("a.x"), "compensate": {"method": "FIND", **refers("2")}}, propagates=True)
        is None
    )
    assert check({"name": "a"}, refers("1"), propagates=True) is None
    assert check(refers("input.x"), propagates=False, has_input=True) is None


@rows(
    "steps",
    [refers("later"), {"name": "later"}],
    [{"name": "me", **refers("me")}],
    [{"name": "a"}, {"name": "a"}],
    [{"name": "7"}],
    [refers("input")],
    [{"parameters": {"x": {"$expr": 3}}}],
    [{"parameters": {"x": {"$expr": "1", "y": 2}}}],
)
def test_cycles_later_steps_and_names_used_twice_are_faults(steps: list[dict[str, Any]]) -> None:
    fault = check(*steps, propagates=True)
    assert fault is not None
    wrong = len(steps) if "name" in steps[-1] and len(steps) == 2 and "parameters" not in steps[0] else 1
    assert fault.at == f"steps/{wrong - 1}"


def test_without_propagation_no_step_is_known() -> None:
    fault = check({"name": "a"}, refers("a"), propagates=False)
    assert fault is not None
    assert "context_propagation" in fault.message


async def test_a_workflow_that_takes_long_is_answered_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.workflows.start.ANSWERED_WITHIN", 0.05)
    release = asyncio.Event()
    calls = 0

    async def wait(_: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        await release.wait()
        return {}

    async with keeping(make_endpoint("AWAIT", "/porter", wait, impact="reversible"), methods=("CHAIN",)) as bench:
        body = {"steps": [{"method": "AWAIT", "path": "/porter"}]}
        plain = await bench.send("CHAIN", "/", body)
        assert (plain.status, plain.json["result"]["status"]) == (202, "running")
        keyed = await bench.send("CHAIN", "/", body, idempotency_key="k")
        assert (keyed.status, keyed.error["code"], keyed.header("Retry-After")) == (503, "workflow-running", "5")
        release.set()
        monkeypatch.undo()
        ended = await bench.send("CHAIN", "/", body, idempotency_key="k")
        assert ended.json["result"]["chain_id"] == keyed.error["workflow_id"]
        assert (ended.json["result"]["status"], calls) == ("completed", 2)


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
        assert (await run(bench, made["entity_id"], {"floor": 2})).refusal == (403, "procedure-refused")
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
@rows(
    "data",
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
)
async def test_code_and_wrong_steps_are_not_registered(data: Any) -> None:
    async with keeping(ROOMS, methods=METHODS) as bench:
        assert (await propose(bench, data)).refusal == (422, "invalid-data")
        assert await bench.store.read(ListCases()) == []


async def test_steps_of_a_procedure_need_the_authority_of_the_caller() -> None:
    async with keeping(ROOMS, BOOK, methods=METHODS) as bench:
        made = (await propose(bench, {"steps": [{"method": "BOOK", "path": "/rooms"}]})).json["result"]
        await decide(bench, ACCEPTED)
        result = (await run(bench, made["entity_id"])).json["result"]
        assert (result["status"], result["error"]["code"]) == ("failed", "scope-violation")


LISTED_METHODS = ("RUN", "REGISTER", "CHAIN", "RETRY", "ROUTE")


def find_rooms(_: dict[str, Any]) -> dict[str, list[str]]:
    return {"rooms": []}


LISTED_ROOMS = make_endpoint("FIND", "/rooms", find_rooms, properties={"floors": {"type": "array"}})
LISTED_BOOK = make_endpoint("BOOK", "/rooms", echo, impact="irreversible")
FREE = make_endpoint("CANCEL", "/rooms", echo, impact="reversible")
LISTED_STEPS = [{"method": "FIND", "path": "/rooms"}, {"method": "BOOK", "path": "/rooms"}]
FOUND = ListedCall("FIND", "/rooms", "informational")
BOOKED = ListedCall("BOOK", "/rooms", "irreversible")


def square(number: int) -> dict[str, int]:
    """Square a number."""
    return {"square": number * number}


async def listed(bench: StatefulBench, key: tuple[str, str], agent: str = AGENT, **arguments: Any) -> Any:
    server = bench.bench.server
    call = Call(Request(*key, "", {}, b"", bench.connection), server)
    call.principal = Principal(agent_id=agent, scopes=Scopes(("activation:run",)))
    return await list_calls(call, server.routes.endpoints[key], arguments)


async def test_calls_of_a_recipe_say_when_they_are_made() -> None:
    endpoint = compose(
        "BOOK", "/floors", "r", impact="irreversible", properties={"floors": {"type": "array"}}, required=("floors",)
    )
    undo = Compensation(method="CANCEL", path="/rooms")
    made = recipe(
        step("FIND /rooms", when=(Condition(left=given("floors"), op="present"),)),
        step("BOOK /rooms", for_each=given("floors"), max_items=7, compensate=undo),
        step("FIND /rooms"),
    )
    async with keeping(LISTED_ROOMS, LISTED_BOOK, FREE, endpoint, recipes=(made,)) as bench:
        assert [one for one in bench.bench.findings if one.severity == "error"] == []
        found = await listed(bench, ("BOOK", "/floors"), floors=[1])
        assert await listed(bench, ("BOOK", "/rooms")) == ()
    assert [(one.method, one.impact, one.note) for one in found] == [
        ("FIND", "informational", "if its condition holds"),
        ("BOOK", "irreversible", "for each element, at most 7"),
        ("CANCEL", "reversible", "to undo the one before, if a later one fails"),
        ("FIND", "informational", ""),
    ]


async def test_recipe_that_is_confirmed_as_a_whole_is_judged_with_its_calls() -> None:
    from dataclasses import replace

    import msgspec

    endpoint = replace(compose("BOOK", "/floors", "r", impact="irreversible"), confirm=True)
    async with keeping(
        LISTED_ROOMS, LISTED_BOOK, endpoint, recipes=(recipe(step("FIND /rooms"), step("BOOK /rooms")),)
    ) as bench:
        assert (await bench.send("BOOK", "/floors", {})).status == 262
        (case,) = await bench.store.read(ListCases())
    assert msgspec.json.decode(case.subject)["calls"] == [msgspec.to_builtins(FOUND), msgspec.to_builtins(BOOKED)]


@pytest.mark.process
async def test_procedures_of_the_operator_and_of_the_caller_are_listed_and_no_others() -> None:
    procedures = (
        Procedure(procedure_id="square", target=square),
        Procedure(procedure_id="season", steps=tuple(LISTED_STEPS)),
    )
    async with keeping(LISTED_ROOMS, LISTED_BOOK, methods=LISTED_METHODS, procedures=procedures) as bench:
        data = {"steps": LISTED_STEPS[1:]}
        held = await bench.send(
            "REGISTER", "/", {"entity_type": "procedure", "data": data}, authority_scope="procedure:register"
        )
        own = held.json["result"]["entity_id"]
        key = ("RUN", "/")
        assert await listed(bench, key, procedure_id="square", input={"number": 2}) == (
            ListedCall("RUN", "/procedures/square", "irreversible", {"number": 2}),
        )
        assert await listed(bench, key, procedure_id="season") == (FOUND, BOOKED)
        assert await listed(bench, key, procedure_id=own) == (BOOKED,)
        for name, agent in ((own, "b" * 64), ("nothing", AGENT)):
            assert isinstance(await listed(bench, key, agent, procedure_id=name), Fault)


@pytest.mark.process
async def test_retry_of_a_workflow_lists_its_steps() -> None:
    async with keeping(LISTED_ROOMS, LISTED_BOOK, methods=LISTED_METHODS) as bench:
        chain = (await bench.send("CHAIN", "/", {"steps": LISTED_STEPS})).json["result"]["chain_id"]
        assert await listed(bench, ("RETRY", "/"), original_task_id=chain) == (FOUND, BOOKED)
        assert isinstance(await listed(bench, ("RETRY", "/"), "b" * 64, original_task_id=chain), Fault)
        assert isinstance(await listed(bench, ("RETRY", "/"), original_task_id="unknown"), Fault)


async def test_calls_of_lists_inside_others_are_listed_with_when_they_are_made() -> None:
    find, book = {"method": "FIND", "path": "/rooms"}, {"method": "BOOK", "path": "/rooms"}
    each = {"items": [1, 2], "max_items": 5, "steps": [{**book, "undo": find}, {"delay": 3}]}
    steps = [
        {"together": [find, {"for_each": each}]},
        {"approve": {"question": "Go on?", "who": "desk"}},
        {"method": "CHAIN", "parameters": {"steps": [{**book, "when": "1 > 2"}]}},
    ]
    async with keeping(LISTED_ROOMS, LISTED_BOOK, methods=LISTED_METHODS) as bench:
        found = await listed(bench, ("CHAIN", "/"), steps=steps)
        assert [(one.method, one.impact, one.note) for one in found] == [
            ("FIND", "informational", ""),
            ("BOOK", "irreversible", "for each element, at most 5"),
            ("FIND", "informational", "to undo the one before, if a later one fails"),
            ("BOOK", "irreversible", "if desk approves, if 1 > 2"),
        ]
        wrong = await listed(bench, ("CHAIN", "/"), steps=[{"together": [{"delay": "soon"}]}])
        assert isinstance(wrong, Fault)


async def test_composite_that_makes_too_many_calls_is_a_fault() -> None:
    names = [f"r{number}" for number in range(4)]
    endpoints = [compose("BOOK", f"/level{number}", name, impact="irreversible") for number, name in enumerate(names)]
    recipes = [recipe(*[step("BOOK /rooms")] * 9, name="r0")]
    recipes += [recipe(*[step(f"BOOK /level{number}")] * 9, name=f"r{number + 1}") for number in range(3)]
    from bespeak.contract.policy import Policies

    policies = Policies(max_synthesis_depth=100_000)
    async with keeping(LISTED_BOOK, *endpoints, recipes=tuple(recipes), policies=policies) as bench:
        assert len(await listed(bench, ("BOOK", "/level2"))) == 9
        assert isinstance(await listed(bench, ("BOOK", "/level3")), Fault)
