"""Wishes: what a proposal gives, wants and says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.extensions.negotiation.planner.contracts import contract
from tests.extensions.negotiation.planner.services import HOTEL

from bespeak.extensions.negotiation.plan import Miss
from bespeak.extensions.negotiation.planner.operation import Index
from bespeak.extensions.negotiation.planner.vocabulary import Reading
from bespeak.extensions.negotiation.planner.wish import Wish, is_reading, read_wish

KNOWN = Index(HOTEL).vocabulary


def wish(line: str) -> Wish:
    found = read_wish(contract(line), KNOWN)
    assert isinstance(found, Wish)
    return found


def test_single_fields_and_lists_are_kept_apart() -> None:
    found = wish("FIND /rooms -> count:i rooms[].id rooms[].hotel.name")
    assert [field.text for field in found.singles] == ["count"]
    assert [field.text for field in found.tables[0].columns] == ["rooms[].id", "rooms[].hotel.name"]


def test_a_known_noun_at_the_end_of_a_segment_is_what_is_wanted() -> None:
    found = wish("FETCH /guests/{id}/latest-booking -> total:n")
    assert found.noun == "booking"
    assert found.must == ("guest", "booking")
    assert found.unknown == ("latest",)


def test_an_input_without_a_noun_may_belong_to_any_noun_of_the_path() -> None:
    readings = wish("LIST /guests/bookings email:e -> bookings[].id").givens[0].readings
    assert {Reading("guest", "email"), Reading("booking", "email")} <= set(readings)


def test_a_noun_that_an_input_only_belongs_to_is_not_said() -> None:
    assert "guest" not in wish("LIST /bookings email:e -> bookings[].id").said
    assert "guest" in wish("LIST /bookings guest_email:e -> bookings[].id").said


def test_a_path_parameter_need_not_be_declared() -> None:
    proposal = replace(contract("FETCH /rooms/{id} -> price:n"), input_schema={})
    found = read_wish(proposal, KNOWN)
    assert isinstance(found, Wish)
    assert found.givens[0].readings == (Reading("room", "id"),)


@pytest.mark.parametrize(("method", "reads"), [("FIND", True), ("SUMMARIZE", True), ("BOOK", False), ("XYZZY", False)])
def test_a_verb_that_is_not_known_to_read_changes_something(method: str, reads: bool) -> None:
    assert is_reading(method) == reads


def test_a_proposal_that_wants_nothing_is_refused() -> None:
    found = read_wish(replace(contract("FIND /rooms -> id"), output_schema={}), KNOWN)
    assert isinstance(found, Miss)
