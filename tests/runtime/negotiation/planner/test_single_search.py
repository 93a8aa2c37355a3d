"""Single values: the fewest calls that yield all of them."""

from __future__ import annotations

from tests.runtime.negotiation.planner.services import approved, refused


def test_one_call_that_yields_everything_is_enough() -> None:
    assert len(approved("FETCH /rooms/{id} -> price:n beds:i kind=single|double").endpoints) == 1


def test_fields_of_two_things_come_from_two_calls() -> None:
    found = approved("FETCH /rooms/{id}/hotel -> room_price:n hotel_name hotel_stars:i")
    assert [str(one) for one in found.endpoints] == ["FETCH /rooms/{id}", "FETCH /hotels/{id}"]


def test_a_given_id_may_be_repeated_in_the_result() -> None:
    found = approved("FETCH /guests/{guest_id} -> guest_id phone")
    assert len(found.endpoints) == 1


def test_a_result_that_only_repeats_the_input_is_no_plan() -> None:
    assert refused("FETCH /guests/{guest_id}/key -> guest_id").misses
