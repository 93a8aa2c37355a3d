"""A small call, a large answer and a data class to report on. Usage: bespeak serve FOLDER, with this as its app."""

import itertools
from typing import TypedDict

import contract
from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


class Room(TypedDict):
    """A room."""

    room_id: str
    beds: int
    price: float


_ROOMS: list[Room] = [{"room_id": f"room-{number}", "beds": number % 4, "price": 99.5} for number in range(76_000)]
_calls = itertools.count()


@app.endpoint("FETCH", "/room", impact="informational", scopes=[contract.SCOPE])
async def fetch_room(room_id: str) -> Room:
    """Return one room by its identifier.

    Outcome: The room is returned.
    """
    return {"room_id": room_id, "beds": 2, "price": 99.5}


@app.endpoint("FETCH", "/rooms", impact="informational", scopes=[contract.SCOPE])
async def fetch_rooms() -> list[Room]:
    """Return every room of the hotel, about 4 MB.

    Outcome: All rooms are returned.
    """
    return _ROOMS


@app.data("rooms", description="Rooms of the hotel.", scopes=[contract.SCOPE])
def rooms() -> list[Room]:
    """Return rooms of the hotel, others each time: the typesetter remembers what it has set."""
    first = next(_calls) * 10 % 70_000
    return _ROOMS[first : first + 2000]
