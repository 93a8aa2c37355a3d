from dataclasses import dataclass

from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@dataclass
class Room:
    room_id: str
    price: float


@dataclass
class Rooms:
    rooms: list[Room]


@app.endpoint("LIST", "/rooms", impact="informational")
def list_rooms() -> Rooms:
    """List the rooms of the hotel.

    Outcome: All rooms are returned.
    """
    return Rooms([Room("12", 80), Room("14", 240)])
