"""Endpoints and compositions of them. Usage: bespeak serve composition_app.py:app"""

from typing import Any, TypedDict

import contract
from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


class Room(TypedDict):
    """A room on offer."""

    room_id: str
    price: float


class Rooms(TypedDict):
    """The rooms of a city."""

    rooms: list[Room]


class Details(TypedDict):
    """What there is to know of a room."""

    room_id: str
    beds: int
    view: str


class Reservation(TypedDict):
    """The output."""

    reservation_id: str


ROOMS: list[Room] = [{"room_id": str(number), "price": 40.0 + number} for number in range(3)]


@app.endpoint("FIND", "/rooms", impact="informational", scopes=[contract.SCOPE])
async def find_rooms(city: str, beds: int = 1) -> Rooms:
    """Find the rooms of a city.

    Outcome: The rooms are returned.
    """
    return {"rooms": ROOMS}


@app.endpoint("FETCH", "/rooms/{room_id}", impact="informational", scopes=[contract.SCOPE])
async def fetch_room(room_id: str) -> Details:
    """Fetch what there is to know of a room.

    Outcome: The details are returned.
    """
    return {"room_id": room_id, "beds": 2, "view": "sea"}


@app.endpoint("BOOK", "/room", impact="irreversible", scopes=[contract.SCOPE])
async def book_room(room_id: str, guest: str) -> Reservation:
    """Reserve a room for the named guest.

    Outcome: A reservation exists and its reservation_id is returned.
    """
    return {"reservation_id": contract.next_reservation_id()}


@app.recipe("QUERY", "/rooms", impact="informational", scopes=[contract.SCOPE])
def pass_on(city: str, beds: int = 1) -> Rooms:
    """Query the rooms of a city, by the endpoint that finds them.

    Outcome: The rooms are returned.
    """
    found: Any = app.step("FIND", "/rooms", {"city": city, "beds": beds})
    return found  # type: ignore[no-any-return] # the output of the step


@app.recipe("BOOK", "/stay", impact="irreversible", scopes=[contract.SCOPE])
def book_cheapest(city: str, guest: str) -> Reservation:
    """Book the cheapest room of a city.

    Outcome: A reservation of the cheapest room exists.
    """
    found = app.step("FIND", "/rooms", {"city": city})
    cheapest = found.rooms.sort("price").first()
    room = app.step("FETCH", "/rooms/{room_id}", {"room_id": cheapest.room_id})
    booked: Any = app.step("BOOK", "/room", {"room_id": room.room_id, "guest": guest})
    return booked  # type: ignore[no-any-return] # the output of the step
