"""The service of a small hotel, with five endpoints. Usage: bespeak serve five_app.py:app"""

from datetime import date
from typing import Annotated, Literal, TypedDict
from uuid import UUID

import msgspec

from bespeak import App

app = App(
    "Acme Rooms",
    server_id="rooms.acme.example",
    operator="Acme",
    contact="ops@acme.example",
    description="Rooms of the Acme hotels: search, prices, booking and cancellation.",
)

RoomId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="Number of the room.")]


class Room(TypedDict):
    """An available room."""

    room_id: str
    beds: int
    price: float
    currency: str


class Rooms(TypedDict):
    """The result of a search."""

    rooms: list[Room]


class Price(TypedDict):
    """The price of a stay."""

    total: float
    currency: str
    nights: int


class Reservation(TypedDict):
    """A confirmed stay."""

    reservation_id: UUID
    room_id: str
    arrival: date
    departure: date
    status: Literal["confirmed", "cancelled"]


@app.endpoint("FIND", "/rooms", impact="informational")
async def find_rooms(
    arrival: date, departure: date, beds: Annotated[int, msgspec.Meta(ge=1, le=8)] = 2, max_price: float | None = None
) -> Rooms:
    """Find rooms that are free between two dates.

    Outcome: The free rooms are returned with their prices.
    """
    return {"rooms": []}


@app.endpoint("ESTIMATE", "/stay", impact="informational")
async def estimate_stay(room_id: RoomId, arrival: date, departure: date) -> Price:
    """Estimate what a stay in a room costs.

    Outcome: The price of the whole stay is returned.
    """
    return {"total": 0.0, "currency": "EUR", "nights": 1}


@app.endpoint(
    "BOOK",
    "/room",
    impact="irreversible",
    scopes=["booking:room"],
    errors={"room_unavailable": "The room is taken on these dates."},
)
async def book_room(guest_id: UUID, room_id: RoomId, arrival: date, departure: date) -> Reservation:
    """Reserve a room for a guest.

    Outcome: A confirmed reservation exists and is returned.
    """
    raise NotImplementedError


@app.endpoint(
    "FETCH",
    "/reservations/{reservation_id}",
    impact="informational",
    scopes=["booking:read"],
    errors={"reservation_unknown": "No reservation has this id."},
)
async def fetch_reservation(reservation_id: UUID) -> Reservation:
    """Fetch one reservation by its id.

    Outcome: The reservation is returned as it stands.
    """
    raise NotImplementedError


@app.endpoint(
    "CANCEL",
    "/reservations/{reservation_id}",
    impact="irreversible",
    scopes=["booking:room"],
    errors={"reservation_unknown": "No reservation has this id.", "too_late": "The stay has begun."},
)
async def cancel_reservation(reservation_id: UUID, reason: str = "") -> Reservation:
    """Cancel a reservation before the stay begins.

    Outcome: The reservation is cancelled and the room is free again.
    """
    raise NotImplementedError
