"""An inn with two rooms: `bespeak serve examples/travel/partners/inn.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from uuid import uuid4

from bespeak import App, Refusal

app = App("Harbour Inn", server_id="inn.example", operator="Harbour Inn", contact="desk@inn.example")

ROOMS = {"12": 90, "31": 240}
"""Rooms, and what a night costs in EUR."""


@dataclass
class Reservation:
    """A room for some nights."""

    reservation_id: str
    guest: str
    room: str
    arrival: date
    departure: date
    price: int
    state: str = "reserved"


reservations: dict[str, Reservation] = {}


@app.endpoint(
    "BOOK",
    "/room",
    impact="reversible",
    confidence=0.95,
    inline=True,  # in the event loop, so that one call at a time looks at the reservations
    errors={"room_unavailable": "The room is taken on those nights, or there is no such room."},
)
def book_room(guest: str, room: str, arrival: date, departure: date) -> Reservation:
    """Reserve a room for a guest.

    Outcome: The room is reserved, and its reservation_id and price are returned.
    """
    held = [one for one in reservations.values() if one.room == room and one.state == "reserved"]
    if room not in ROOMS or any(arrival < one.departure and one.arrival < departure for one in held):
        raise Refusal("room_unavailable", f"Room {room} cannot be had from {arrival} to {departure}.")
    price = ROOMS[room] * (departure - arrival).days
    made = Reservation(str(uuid4()), guest, room, arrival, departure, price)
    return reservations.setdefault(made.reservation_id, made)


@app.endpoint(
    "CANCEL",
    "/reservations/{reservation_id}",
    impact="irreversible",
    confidence=0.95,
    errors={"reservation_unknown": "The inn has no such reservation."},
)
def cancel_room(reservation_id: str) -> Reservation:
    """Cancel a reservation.

    Outcome: The room is free again.
    """
    if reservation_id not in reservations:
        raise Refusal("reservation_unknown", f"There is no reservation {reservation_id}.")
    reservations[reservation_id].state = "cancelled"
    return reservations[reservation_id]


@app.endpoint("QUERY", "/reservations", impact="informational", confidence=0.95)
def find_reservations(guest: str) -> list[Reservation]:
    """Find what is reserved for a guest.

    Outcome: The reservations of the guest are returned, with their states.
    """
    return [one for one in reservations.values() if one.guest == guest]
