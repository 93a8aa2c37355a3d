"""Small services of our own that the tests of the planner share."""

from __future__ import annotations

from collections.abc import Iterable

from tests.extensions.negotiation.planner.contracts import contract, contracts

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.negotiation.plan import Impossible, Plan
from bespeak.extensions.negotiation.planner.planner import Planner

HOTEL = contracts("""
LIST /rooms -> rooms[].id rooms[].price:n rooms[].hotel_id rooms[].kind=single|double
FETCH /rooms/{id} -> id price:n hotel_id kind=single|double beds:i
FETCH /hotels/{id} -> id name city stars:i
LIST /hotels city? -> hotels[].id hotels[].name hotels[].city
LIST /guests -> guests[].id guests[].email:e guests[].name
FETCH /guests/{id} -> id email:e name phone
LIST /bookings guest_id? limit?:i cursor? ->
  bookings[].id bookings[].guest_id bookings[].room_id bookings[].arrival:d bookings[].total:n next_cursor?
FETCH /bookings/{id} -> id guest_id room_id arrival:d departure:d total:n
!BOOK /rooms guest_id room_id arrival:d departure:d -> booking_id total:n
~CANCEL /bookings/{id} -> id status
""")


def plan(line: str, service: Iterable[Endpoint] = HOTEL) -> Plan | Impossible:
    """Plan the proposal of a line."""
    return Planner(service).plan(contract(line))


def approved(line: str, service: Iterable[Endpoint] = HOTEL) -> Plan:
    """Plan the proposal of a line that must be approved."""
    found = plan(line, service)
    assert isinstance(found, Plan), found
    assert found.is_certain, found.doubts
    return found


def doubtful(line: str, service: Iterable[Endpoint] = HOTEL) -> Plan:
    """Plan the proposal of a line for which there is only a plan to offer."""
    found = plan(line, service)
    assert isinstance(found, Plan), found
    assert not found.is_certain, found.explanation
    assert found.doubts
    return found


def refused(line: str, service: Iterable[Endpoint] = HOTEL) -> Impossible:
    """Plan the proposal of a line that must be refused."""
    found = plan(line, service)
    assert isinstance(found, Impossible), found
    return found
