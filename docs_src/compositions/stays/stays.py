from typing import TypedDict

from bespeak import App, Refusal

app = App(
    "Acme Stays",
    server_id="stays.acme.example",
    operator="Acme",
    contact="ops@acme.example",
)


class Room(TypedDict):
    room_id: str
    price: float


class Rooms(TypedDict):
    rooms: list[Room]


class Reservation(TypedDict):
    reservation_id: str


class Taxi(TypedDict):
    taxi: str


class Stay(TypedDict):
    reservation_id: str
    price: float
    taxi: str


@app.endpoint("FIND", "/rooms", impact="informational")
def find_rooms(city: str) -> Rooms:
    """Find the free rooms of a city.

    Outcome: The free rooms are returned.
    """
    return {"rooms": [{"room_id": "7", "price": 90.0}, {"room_id": "12", "price": 40.0}]}


@app.endpoint("BOOK", "/room", impact="reversible")
def book_room(room_id: str, guest: str) -> Reservation:
    """Book a room for a guest.

    Outcome: A reservation exists and its id is returned.
    """
    return {"reservation_id": f"{guest}-{room_id}"}


@app.endpoint("CANCEL", "/room", impact="reversible")
def cancel_room(reservation_id: str) -> dict[str, bool]:
    """Cancel the reservation of a room.

    Outcome: The reservation no longer exists.
    """
    return {"cancelled": True}


@app.endpoint("ORDER", "/taxi", impact="reversible", errors={"no_taxi": "No taxi is free."})
def order_taxi(city: str, guest: str) -> Taxi:
    """Order a taxi for a guest.

    Outcome: A taxi is on its way.
    """
    if city == "Oslo":
        raise Refusal("no_taxi", "All taxis of Oslo are on the road.")
    return {"taxi": f"for {guest}"}


@app.recipe("BOOK", "/stay", impact="reversible")
def book_stay(city: str, guest: str, max_price: float = 100.0) -> Stay:
    """Book the cheapest room of a city and order a taxi to it.

    Outcome: A reservation of the cheapest room exists, and a taxi is on its way.
    """
    found = app.step("FIND", "/rooms", {"city": city}, name="found")
    room = found.rooms.where(lambda room: room.price <= max_price).sort("price").first()
    booked = app.step(
        "BOOK",
        "/room",
        {"room_id": room.room_id, "guest": guest},
        name="booked",
        undo=("CANCEL", "/room", lambda made: {"reservation_id": made.reservation_id}),
    )
    ordered = app.step("ORDER", "/taxi", {"city": city, "guest": guest})
    return Stay(reservation_id=booked.reservation_id, price=room.price, taxi=ordered.taxi)
