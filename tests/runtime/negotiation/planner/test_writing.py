"""Recipes of plans can be written to a file and read back."""

from __future__ import annotations

import pytest
from tests.runtime.negotiation.planner.services import approved


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
