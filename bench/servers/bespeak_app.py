"""The contract implemented with bespeak. Usage: bespeak serve bespeak_app.py:app"""

from datetime import date
from typing import Annotated, TypedDict
from uuid import UUID

import msgspec

import contract
from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


class Reservation(TypedDict):
    """The output."""

    reservation_id: UUID


@app.endpoint(contract.METHOD, contract.PATH, impact="irreversible", confidence=0.95, scopes=[contract.SCOPE])
async def book_room(
    guest_id: UUID, room_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)], arrival: date, departure: date
) -> Reservation:
    """Reserve a room for the named guest at the named property.

    Outcome: A confirmed reservation exists and its reservation_id is returned.
    """
    return await contract.book_room(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]


@app.endpoint(contract.METHOD, contract.THREADED, impact="irreversible", confidence=0.95, scopes=[contract.SCOPE])
def book_hall(
    guest_id: UUID, room_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)], arrival: date, departure: date
) -> Reservation:
    """Reserve a hall for the named guest at the named property.

    Outcome: A confirmed reservation exists and its reservation_id is returned.
    """
    return contract.book_hall(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]
