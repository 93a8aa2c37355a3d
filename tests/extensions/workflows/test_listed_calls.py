"""The calls that composites of a server would make, for a caller."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compositions import compose, given, recipe, step
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.confirmation import ListedCall
from bespeak.contract.procedure import Procedure
from bespeak.contract.recipe import Compensation, Condition
from bespeak.extensions.workflows.listed_calls import list_calls
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.call import Call
from bespeak.state.store.commands.cases import ListCases

pytestmark = pytest.mark.anyio

METHODS = ("RUN", "REGISTER", "CHAIN", "RETRY", "ROUTE")


def find_rooms(_: dict[str, Any]) -> dict[str, list[str]]:
    return {"rooms": []}


ROOMS = make_endpoint("FIND", "/rooms", find_rooms, properties={"floors": {"type": "array"}})
BOOK = make_endpoint("BOOK", "/rooms", echo, impact="irreversible")
FREE = make_endpoint("CANCEL", "/rooms", echo, impact="reversible")
STEPS = [{"method": "FIND", "path": "/rooms"}, {"method": "BOOK", "path": "/rooms"}]
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
    async with keeping(ROOMS, BOOK, FREE, endpoint, recipes=(made,)) as bench:
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
    async with keeping(ROOMS, BOOK, endpoint, recipes=(recipe(step("FIND /rooms"), step("BOOK /rooms")),)) as bench:
        reply = await bench.send("BOOK", "/floors", {})
        assert reply.status == 262
        (case,) = await bench.store.read(ListCases())
    assert msgspec.json.decode(case.subject)["calls"] == [msgspec.to_builtins(FOUND), msgspec.to_builtins(BOOKED)]


@pytest.mark.process
async def test_procedures_of_the_operator_and_of_the_caller_are_listed_and_no_others() -> None:
    procedures = (
        Procedure(procedure_id="square", target=square),
        Procedure(procedure_id="season", steps=tuple(STEPS)),
    )
    async with keeping(ROOMS, BOOK, methods=METHODS, procedures=procedures) as bench:
        data = {"steps": STEPS[1:]}
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
    async with keeping(ROOMS, BOOK, methods=METHODS) as bench:
        chain = (await bench.send("CHAIN", "/", {"steps": STEPS})).json["result"]["chain_id"]
        assert await listed(bench, ("RETRY", "/"), original_task_id=chain) == (FOUND, BOOKED)
        assert isinstance(await listed(bench, ("RETRY", "/"), "b" * 64, original_task_id=chain), Fault)
        assert isinstance(await listed(bench, ("RETRY", "/"), original_task_id="unknown"), Fault)


async def test_composite_that_makes_too_many_calls_is_a_fault() -> None:
    names = [f"r{number}" for number in range(4)]
    endpoints = [compose("BOOK", f"/level{number}", name, impact="irreversible") for number, name in enumerate(names)]
    recipes = [recipe(*[step("BOOK /rooms")] * 9, name="r0")]
    recipes += [recipe(*[step(f"BOOK /level{number}")] * 9, name=f"r{number + 1}") for number in range(3)]
    from bespeak.contract.policy import Policies

    policies = Policies(max_synthesis_depth=100_000)
    async with keeping(BOOK, *endpoints, recipes=tuple(recipes), policies=policies) as bench:
        assert len(await listed(bench, ("BOOK", "/level2"))) == 9
        assert isinstance(await listed(bench, ("BOOK", "/level3")), Fault)
