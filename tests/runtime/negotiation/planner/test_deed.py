"""Deeds: effects are chosen by verb and noun."""

from __future__ import annotations

from tests.runtime.negotiation.planner.contracts import contracts
from tests.runtime.negotiation.planner.services import approved, refused


def test_the_verb_and_the_noun_choose_the_deed() -> None:
    found = approved("~CANCEL /bookings booking_id -> status")
    assert [str(one) for one in found.endpoints] == ["CANCEL /bookings/{id}"]


def test_the_key_of_a_deed_may_be_looked_up() -> None:
    found = approved("!BOOK /rooms guest_email:e room_id arrival:d departure:d -> booking_id")
    assert [str(one) for one in found.endpoints] == ["LIST /guests", "BOOK /rooms"]
    assert found.impact == "irreversible"


def test_a_field_is_never_a_reason_for_a_deed() -> None:
    refused("FETCH /rooms guest_id room_id arrival:d departure:d -> booking_id")


def test_an_unknown_deed_names_the_noun() -> None:
    assert "PAINT" in refused("~PAINT /rooms/{id} -> id").misses[0].reason


def test_a_deed_whose_inputs_are_unknown_is_named_with_them() -> None:
    service = contracts("!PAY /invoices/{id} iban -> payment_id")
    found = refused("!PAY /invoices/{id} -> payment_id", service).misses[0]
    assert "`iban`" in found.reason
    assert str(found.nearest) == "PAY /invoices/{id}"


def test_a_deed_is_named_with_the_key_that_nothing_given_chooses() -> None:
    service = contracts(
        "!BOOK /room guest_id room_id arrival:d -> reservation_id\n"
        "QUERY /rooms arrival?:d -> rooms[].room_id rooms[].price:n"
    )
    found = refused("!BOOK /room/cheapest guest_id arrival:d -> reservation_id", service).misses[0]
    assert (found.reason, str(found.nearest)) == ("`BOOK /room` needs `room_id`.", "BOOK /room")


def test_a_deed_with_more_impact_than_claimed_is_named() -> None:
    found = refused("BOOK /rooms guest_id room_id arrival:d departure:d -> booking_id").misses[0]
    assert (found.field, str(found.nearest)) == ("semantic.impact", "BOOK /rooms")


def test_a_deed_on_another_thing_is_only_the_nearest() -> None:
    assert str(refused("!BOOK /guests guest_id -> booking_id").misses[0].nearest) == "BOOK /rooms"
