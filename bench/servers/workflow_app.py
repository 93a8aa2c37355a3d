"""Three endpoints that change something, for workflows. Usage: bespeak serve FOLDER, with this as its app."""

from datetime import UTC, datetime
from typing import TypedDict

import contract
from bespeak import App, Run

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


async def note(guest: str) -> Reservation:
    """Make a reservation without an endpoint."""
    return {"reservation_id": contract.next_reservation_id()}


@app.workflow("calls")
async def calls(run: Run, guest: str) -> Reservation:
    """Book a trip with three calls."""
    await run.call("BOOK", "/rooms", guest=guest)
    await run.call("BOOK", "/seats", guest=guest)
    found: Reservation = await run.call("BOOK", "/cars", guest=guest)
    return found


@app.workflow("steps")
async def steps(run: Run, guest: str) -> Reservation:
    """Book a trip with three functions."""
    await run.step(note, guest)
    await run.step(note, guest)
    return await run.step(note, guest)


class Lateness(TypedDict):
    """How late a run has woken."""

    seconds: float


@app.workflow("sleeper")
async def sleeper(run: Run, until: datetime) -> Lateness:
    """Sleep until a time."""
    await run.sleep(until=until.astimezone(UTC))
    return {"seconds": (run.now() - until).total_seconds()}
