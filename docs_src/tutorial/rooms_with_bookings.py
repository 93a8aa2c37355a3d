from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Annotated
from uuid import UUID, uuid4

from msgspec import Meta

from bespeak import App, Refusal

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")

BEDS = {"101": 1, "102": 2, "103": 3}


@dataclass
class Booking:
    booking_id: UUID
    room_id: str
    night: date


BOOKINGS: dict[UUID, Booking] = {}
BOOKING = Lock()  # two calls may run at once, each in its thread


@app.endpoint("QUERY", "/rooms", impact="informational")
def find_rooms(beds: Annotated[int, Meta(ge=1, le=3)] = 1) -> dict[str, list[str]]:
    """Find rooms with enough beds.

    Outcome: The rooms that fit are returned; nothing has been booked.

    Args:
        beds: How many people sleep in the room.
    """
    return {"rooms": [room for room, size in BEDS.items() if size >= beds]}


@app.endpoint("BOOK", "/room", impact="irreversible", scopes=["booking:room"])
def book_room(room_id: str, night: date) -> Booking:
    """Book a room for one night.

    Outcome: The booking exists and is returned.

    Errors:
        room_unavailable: The room is taken, or there is no such room.
    """
    if room_id not in BEDS:
        raise Refusal("room_unavailable", f"There is no room {room_id}.", rooms=list(BEDS))
    with BOOKING:
        if any(taken.room_id == room_id and taken.night == night for taken in BOOKINGS.values()):
            raise Refusal("room_unavailable", "The room is taken.")
        booking = Booking(uuid4(), room_id, night)
        BOOKINGS[booking.booking_id] = booking
    return booking


@app.endpoint("FETCH", "/bookings/{booking_id}", impact="informational", scopes=["booking:room"])
def fetch_booking(booking_id: UUID) -> Booking:
    """Fetch one booking by its id.

    Outcome: The booking is returned as it stands.

    Errors:
        booking_unknown: There is no such booking.
    """
    if booking_id not in BOOKINGS:
        raise Refusal("booking_unknown", "There is no such booking.")
    return BOOKINGS[booking_id]
