"""Recipes of plans can be written to a file and read back."""

from __future__ import annotations

import pytest
from tests.extensions.negotiation.planner.services import approved


@pytest.mark.parametrize(
    "line",
    [
        "FIND /rooms/cheap max_price:n -> rooms[].id rooms[].price:n",
        "FETCH /rooms/{id}/hotel -> name address.city",
        "LIST /guests/bookings guest_email:e -> bookings[].id bookings[].room_price:n",
    ],
)
def test_steps_capture_what_later_ones_use(line: str) -> None:
    recipe = approved(line.replace("address.city", "city")).recipe
    captured = [step.output for step in recipe.steps]
    assert captured == [f"step_{number}" for number in range(1, len(captured) + 1)]
    assert recipe.to_json()["output"]


def test_the_name_of_a_recipe_is_that_of_its_endpoint_and_stable() -> None:
    names = {approved("FETCH /rooms/{id} -> price:n").recipe.name for _ in range(2)}
    assert len(names) == 1
    assert names.pop().startswith("fetch-")


def test_nested_objects_are_built_from_nothing() -> None:
    found = approved("FETCH /rooms/{id} -> room.price:n room.beds:i").recipe.output["room"].to_json()
    assert (found["kind"], found["value"], set(found["select"])) == ("constant", {}, {"price", "beds"})


def test_every_step_and_every_field_is_explained() -> None:
    assert approved("FETCH /rooms/{id}/hotel -> name").explanation == (
        "Step 1: call FETCH /rooms/{id} with id = the input id.",
        "Step 2: call FETCH /hotels/{id} with id = hotel_id of step 1.",
        "Result: name = name of step 2.",
    )


def test_filters_and_picks_are_explained() -> None:
    assert approved("FIND /rooms/cheap max_price:n -> rooms[].id").explanation[-1] == (
        "Result: rooms are the rooms of step 1 where price is at most the input max_price, each with "
        "id = id of the row."
    )
    assert "where email equals the input guest_email" in approved("FETCH /guests guest_email:e -> name").explanation[-1]
