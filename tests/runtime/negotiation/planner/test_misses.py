"""Misses: what is missing, and what came closest."""

from __future__ import annotations

from tests.runtime.negotiation.planner.contracts import contracts
from tests.runtime.negotiation.planner.services import refused


def test_a_field_that_nothing_yields_is_named() -> None:
    miss = refused("FETCH /rooms/{id} -> price:n owner_name").misses[0]
    assert (miss.field, miss.nearest) == ("owner_name", None)


def test_a_field_of_another_type_names_the_endpoint_that_has_it() -> None:
    miss = refused("FETCH /rooms/{id} -> price:s").misses[0]
    assert "another type" in miss.reason
    assert miss.nearest is not None


def test_a_field_that_another_noun_has_names_the_endpoint() -> None:
    miss = refused("FETCH /rooms/{id} -> stars:i").misses[0]
    assert str(miss.nearest) == "FETCH /hotels/{id}"


def test_a_column_of_a_list_is_named_with_its_list() -> None:
    assert refused("LIST /rooms -> rooms[].id rooms[].owner").misses[0].field == "rooms[].owner"


def test_the_nearest_endpoint_is_about_the_noun_and_yields_most_of_what_is_wanted() -> None:
    service = contracts("""
LIST /alarms -> alarms[].name alarms[].stars:i
FETCH /hotels/{id} -> id name stars:i
FETCH /hotels/{id}/awards -> stars:s
""")
    miss = refused("FETCH /hotels/{id} -> name stars:b", service).misses[0]
    assert str(miss.nearest) == "FETCH /hotels/{id}"


def test_a_role_that_nothing_has_is_not_called_another_type() -> None:
    miss = refused("FETCH /bookings/{id} -> previous_room_id").misses[0]
    assert "No usable endpoint yields" in miss.reason
