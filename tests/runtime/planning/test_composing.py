"""Calls are composed from endpoints that may be used, and doubt is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.planner.contracts import contract
from tests.service import build, echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.runtime.negotiation.plan import Impossible
from bespeak.runtime.workflows.goals import Composed, Composer, Goal, read_goal


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
    read = read_goal({"goal": goal, "constraints": limits})
    assert isinstance(read, Goal)
    return COMPOSER.compose(read, usable)


def paths(made: Composed | Impossible) -> list[str]:
    assert isinstance(made, Composed), made
    return [f"{call['method']} {call['path']}" for call in made.calls]


def test_wanted_fields_are_reached_over_several_calls() -> None:
    made = compose({"path": "/bookings/{id}/guest", "output": ["name", "phone"]}, given={"id": "b-1"})
    assert paths(made) == ["FETCH /bookings/{id}", "FETCH /guests/{id}"]
    assert isinstance(made, Composed)
    assert [call["parameters"] for call in made.calls] == [{"id": "b-1"}, {"id": {"$from": "step_1.guest_id"}}]
    assert (made.needs, made.result["name"]) == ((), {"$from": "step_2.name"})


def test_what_is_not_given_is_needed() -> None:
    made = compose({"path": "/guests/{id}", "output": ["phone"]})
    assert isinstance(made, Composed)
    assert (made.calls[0]["parameters"], made.needs) == ({"id": {"$from": "input.id"}}, ("id",))


def test_words_mean_the_endpoint_that_does_what_they_say() -> None:
    made = compose("book a room for the guest", given={"guest_id": "g", "room_id": "r"})
    assert paths(made) == ["BOOK /rooms"]


def test_several_things_to_do_are_several_calls_that_use_each_other() -> None:
    made = compose("book a room for a guest, then cancel the booking", given={"guest_id": "g", "room_id": "r"})
    assert paths(made) == ["BOOK /rooms", "CANCEL /bookings/{booking_id}"]
    assert isinstance(made, Composed)
    assert made.calls[1]["parameters"] == {"booking_id": {"$from": "step_1.booking_id"}}


@pytest.mark.parametrize("goal", ["fly to the moon", {"path": "/moons", "output": ["crater"]}, "9$%&", "日本"])
def test_a_goal_that_nothing_fits_has_no_plan(goal: Any) -> None:
    found = compose(goal)
    assert isinstance(found, Impossible)
    assert found.misses


def test_endpoints_that_may_not_be_used_are_not_planned_with() -> None:
    found = compose("book a room for the guest", lambda endpoint: endpoint.method != "BOOK")
    assert isinstance(found, Impossible) or "BOOK /rooms" not in paths(found)


def test_words_that_may_mean_several_endpoints_are_doubted() -> None:
    made = compose("fetch one thing", given={"id": "x"})
    assert isinstance(made, Composed)
    assert any("may also mean" in doubt for doubt in made.doubts)
