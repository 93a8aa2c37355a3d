"""Explanations: plans in plain English."""

from __future__ import annotations

from tests.runtime.negotiation.planner.services import approved


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
