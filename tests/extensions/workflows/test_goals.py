"""PLAN composes calls that the caller may make, says what is in doubt, and executes nothing."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.planner.contracts import contract
from tests.service import build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.limits import read_cost
from bespeak.contract.recipe import Condition, RecipeStep, Source, constant
from bespeak.extensions.negotiation.plan import Impossible
from bespeak.extensions.workflows.goals import Composed, Composer, UnwritableError, read_goal, write_call, write_value
from bespeak.extensions.workflows.methods_execute import KIND
from bespeak.runtime.handling import RefusedError
from bespeak.state.store.commands.records import ListRecords

pytestmark = pytest.mark.anyio


def served(line: str, intent: str) -> Endpoint:
    made = contract(line)
    handler = RegisteredFunction(function="tests.function", target=echo)
    return replace(
        made,
        description=intent,
        handler=handler,
        semantic=replace(made.semantic, intent=intent, capability="retrieval"),
    )


COMPOSER = Composer(
    build(
        served("LIST /guests -> guests[].id guests[].email:e guests[].name", "List the guests of the hotel."),
        served("FETCH /guests/{id} -> id name email:e phone", "Fetch one guest."),
        served("FETCH /bookings/{id} -> id guest_id room_id total:n", "Fetch one booking."),
        served("!BOOK /rooms guest_id room_id -> booking_id total:n", "Book a room for a guest."),
        served("!CANCEL /bookings/{booking_id} -> status", "Cancel a booking."),
        make_endpoint("AUDIT", "/ledger", echo),
    ).routes
)


def compose(goal: Any, usable: Any = lambda _: True, **limits: Any) -> Composed | Impossible:
    return COMPOSER.compose(read_goal({"goal": goal, "constraints": limits}), usable)


def paths(made: Composed | Impossible) -> list[str]:
    assert isinstance(made, Composed), made
    return [f"{call['method']} {call['path']}" for call in made.calls]


def test_wanted_fields_are_reached_over_several_calls() -> None:
    made = compose({"path": "/bookings/{id}/guest", "output": ["name", "phone"]}, given={"id": "b-1"})
    assert paths(made) == ["FETCH /bookings/{id}", "FETCH /guests/{id}"]
    assert isinstance(made, Composed)
    assert [call["parameters"] for call in made.calls] == [{"id": "b-1"}, {"id": {"$from": "step_1.guest_id"}}]
    assert (made.needs, made.result["name"]) == ((), {"$from": "step_2.name"})


def test_several_things_to_do_are_calls_that_use_each_other_and_need_the_rest() -> None:
    made = compose({"path": "/guests/{id}", "output": ["phone"]})
    assert isinstance(made, Composed)
    assert (made.calls[0]["parameters"], made.needs) == ({"id": {"$from": "input.id"}}, ("id",))
    made = compose("book a room for a guest, then cancel the booking", given={"guest_id": "g", "room_id": "r"})
    assert paths(made) == ["BOOK /rooms", "CANCEL /bookings/{booking_id}"]
    assert isinstance(made, Composed)
    assert made.calls[1]["parameters"] == {"booking_id": {"$from": "step_1.booking_id"}}


def test_words_mean_the_endpoint_they_describe_or_are_doubted() -> None:
    made = compose("book a room for the guest", given={"guest_id": "g", "room_id": "r"})
    assert paths(made) == ["BOOK /rooms"]
    made = compose("fetch one thing", given={"id": "x"})
    assert isinstance(made, Composed)
    assert any("may also mean" in doubt for doubt in made.doubts)


@pytest.mark.parametrize(
    "goal",
    ["fly to the moon", "book the first one", "cancel that", {"path": "/moons", "output": ["crater"]}, "9$%&", "日本"],
)
def test_a_goal_that_nothing_fits_has_no_plan(goal: Any) -> None:
    found = compose(goal)
    assert isinstance(found, Impossible)
    assert found.misses


def test_calls_for_each_element_and_forbidden_endpoints_are_not_planned() -> None:
    found = compose("book a room for the guest", lambda endpoint: endpoint.method != "BOOK")
    assert isinstance(found, Impossible) or "BOOK /rooms" not in paths(found)
    with pytest.raises(UnwritableError, match="for each element"):
        write_call(RecipeStep(method="FIND", path="/x", for_each=constant([])), {})


GUESTS = Source(
    kind="previous_step",
    value="step_1.guests",
    get="id",
    where=(Condition(left=Source(kind="item", value="email"), right=Source(kind="proposal", value="email")),),
    pick="only",
)
FOUND = "steps.step_1.guests.filter(row, row.email == input.email)"


@rows(
    "source, written",
    (constant(3), 3),
    (Source(kind="proposal", value="email"), "a@b.example"),
    (Source(kind="proposal", value="id"), {"$from": "input.id"}),
    (Source(kind="previous_step", value="step_1.guest_id"), {"$from": "step_1.guest_id"}),
    (Source(kind="previous_step", value="step_1.rooms", pick="first", get="id"), {"$from": "step_1.rooms[0].id"}),
    (GUESTS, {"$expr": f"{FOUND}[{FOUND}.size() == 1 ? 0 : -1].id"}),
    (
        Source(
            kind="previous_step",
            value="s.rooms",
            where=(Condition(left=Source(kind="item", value="n"), op="lt", right=constant('a"b')),),
        ),
        {"$expr": 'steps.s.rooms.filter(row, row.n < "a\\"b")'},
    ),
)
def test_sources_are_written(source: Source, written: Any) -> None:
    assert write_value(source, {"email": "a@b.example"}) == written


@rows(
    "source",
    Source(kind="previous_step", value="s.rooms", sort=constant("price")),
    Source(kind="previous_step", value="s.rooms", select={}),
    Source(kind="previous_step", value="s.ro-oms"),
    Source(kind="item", value="x"),
    Source(
        kind="previous_step",
        value="s.rooms",
        where=(Condition(left=Source(kind="item", value="n"), op="contains", right=constant(1)),),
    ),
    Source(
        kind="previous_step", value="s.rooms", where=(Condition(left=Source(kind="item", value="n"), right=GUESTS),)
    ),
)
def test_what_references_cannot_say_is_not_written(source: Source) -> None:
    with pytest.raises(UnwritableError):
        write_value(source, {})
    with pytest.raises(UnwritableError):
        write_call(RecipeStep(method="FIND", path="/x", input={"a": source}), {})


def test_a_text_is_a_goal_and_constraints_in_words_are_an_assumption() -> None:
    goal = read_goal({"goal": "book a room", "constraints": "cheap", "available_methods": "BOOK, find"})
    assert (goal.text, goal.methods) == ("book a room", {"BOOK", "FIND"})
    assert goal.assumptions == ("Constraints in words are not checked: cheap",)


@pytest.mark.parametrize(
    "output", [["name"], {"name": "string"}, {"type": "object", "properties": {"name": {"type": "string"}}}]
)
def test_wanted_fields_are_names_types_or_a_schema(output: Any) -> None:
    limits = {"given": {"id": 7, "ok": True}, "max_steps": 2, "impact": "informational", "max_cost": {"USD": "0.5"}}
    goal = read_goal({"goal": {"path": "/guests", "output": output}, "constraints": limits})
    assert list(goal.output["properties"]) == ["name"]
    assert goal.input == {"id": {"type": "integer"}, "ok": {"type": "boolean"}}
    assert (goal.max_steps, goal.impact, goal.max_cost) == (2, "informational", {"USD": Decimal("0.5")})


@rows(
    "given, member",
    ({"goal": "  "}, "goal"),
    ({"goal": {}}, "goal"),
    ({"goal": "x" * 3000}, "goal"),
    ({"goal": {"output": ["a"]}}, "goal"),
    ({"goal": {"path": "/a", "output": []}}, "goal"),
    ({"goal": {"path": "/a", "output": [1]}}, "goal"),
    ({"goal": {"path": "/a", "output": ["a"] * 101}}, "goal"),
    ({"goal": {"path": 3, "output": ["a"]}}, "goal"),
    ({"goal": {"path": "/a", "output": ["a"], "code": "x"}}, "goal"),
    ({"goal": "a", "available_methods": [3]}, "available_methods"),
    ({"goal": "a", "constraints": {"colour": "red"}}, "constraints"),
    ({"goal": "a", "constraints": {"max_steps": 0}}, "constraints"),
    ({"goal": "a", "constraints": {"max_steps": True}}, "constraints"),
    ({"goal": "a", "constraints": {"impact": "none"}}, "constraints"),
    ({"goal": "a", "constraints": {"given": []}}, "constraints"),
    ({"goal": "a", "constraints": {"max_cost": {"sheep": 3}}}, "constraints"),
)
def test_a_wrong_parameter_is_named(given: dict[str, Any], member: str) -> None:
    with pytest.raises(RefusedError) as raised:
        read_goal(given)
    assert raised.value.refused.details == {"field": f"/{member}"}


TEXT = {"type": "string"}
CALLED: list[str] = []


def endpoint(method: str, path: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **fields: Any) -> Endpoint:
    def call(given: dict[str, Any]) -> dict[str, Any]:
        CALLED.append(path)
        return {name: f"{name} of {given.get('id', '')}" for name in outputs}

    output = {"type": "object", "properties": dict.fromkeys(outputs, TEXT), "required": list(outputs)}
    made = make_endpoint(
        method, path, call, properties=dict.fromkeys(inputs, TEXT), required=inputs, output=output, **fields
    )
    cost, _ = read_cost({"USD": "0.25"})
    return replace(made, description=f"{method.title()} {path.split('/')[1]}.", cost=cost)


BOOKING = endpoint("FETCH", "/bookings/{id}", ("id",), ("id", "guest_id"))
GUEST = endpoint("FETCH", "/guests/{id}", ("id",), ("id", "name"), scopes=("guests:read",))
GOAL = {"goal": {"path": "/bookings/{id}/guest", "output": ["name"]}, "constraints": {"given": {"id": "b-1"}}}


@pytest.mark.requirement("CORE-4.5-2")
async def test_a_plan_names_calls_that_can_be_executed() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        CALLED.clear()
        reply = await bench.send("PLAN", "/", GOAL, authority_scope="guests:read")
        result = reply.json["result"]
        assert [step["path"] for step in result["ordered_steps"]] == ["/bookings/{id}", "/guests/{id}"]
        assert result["ordered_steps"][1] | {} == {
            "step": 2,
            "name": "step_2",
            "method": "FETCH",
            "path": "/guests/{id}",
            "parameters": {"id": {"$from": "step_1.guest_id"}},
            "purpose": "Fetch guests.",
            "impact": "informational",
            "required_scopes": ["guests:read"],
            "estimated_cost": {"calls": 1, "USD": 0.25},
            "confidence": 1.0,
        }
        assert (result["estimated_cost"], result["needs"]) == ({"calls": 2, "USD": 0.5}, [])
        assert {"confidence", "assumptions"} <= result.keys()
        assert CALLED == []
        assert (await bench.send("PLAN", "/", GOAL, authority_scope="guests:read")).json["result"] == result
        assert len(await bench.store.read(ListRecords(KIND))) == 1


async def test_only_available_methods_within_the_scopes_of_the_caller_are_planned_with() -> None:
    async with keeping(BOOKING, GUEST) as bench:
        refused = await bench.send("PLAN", "/", GOAL)
        assert (refused.status, refused.error["code"]) == (422, "no-plan")
        assert "/guests" not in str(refused.json)
        body = {**GOAL, "available_methods": ["LIST"]}
        assert (await bench.send("PLAN", "/", body, authority_scope="guests:read")).status == 422


@pytest.mark.parametrize("limits", [{"max_steps": 1}, {"max_cost": {"USD": "0.30"}}])
async def test_constraints_are_kept(limits: dict[str, Any]) -> None:
    async with keeping(BOOKING, GUEST) as bench:
        body = {**GOAL, "constraints": {**GOAL["constraints"], **limits}}
        assert (await bench.send("PLAN", "/", body, authority_scope="guests:read")).refusal == (422, "no-plan")


async def test_a_server_without_endpoints_has_no_plan() -> None:
    async with keeping() as bench:
        assert (await bench.send("PLAN", "/", {"goal": "rest"})).error["code"] == "no-plan"
