"""Three endpoints that change something, for workflows. Usage: bespeak serve FOLDER, with this as its app."""

from typing import TypedDict

import contract
from bespeak import App

app = App("Acme Trips", server_id="trips.acme.example", operator="Acme", contact="ops@acme.example")


class Reservation(TypedDict):
    """The output."""

    reservation_id: str


@app.endpoint("BOOK", "/rooms", impact="reversible", scopes=[contract.SCOPE])
async def book_room(guest: str) -> Reservation:
    """Reserve a room for the named guest.

    Outcome: A reservation exists and its reservation_id is returned.
    """
    return {"reservation_id": contract.next_reservation_id()}


@app.endpoint("BOOK", "/seats", impact="reversible", scopes=[contract.SCOPE])
async def book_seat(guest: str) -> Reservation:
    """Reserve a seat for the named guest.

    Outcome: A reservation exists and its reservation_id is returned.
    """
    return {"reservation_id": contract.next_reservation_id()}


@app.endpoint("BOOK", "/cars", impact="reversible", scopes=[contract.SCOPE])
async def book_car(guest: str) -> Reservation:
    """Reserve a car for the named guest.

    Outcome: A reservation exists and its reservation_id is returned.
    """
    return {"reservation_id": contract.next_reservation_id()}
