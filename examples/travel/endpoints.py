"""Endpoints that book and cancel at the partners of the agency: an inn, an airline and a car rental, over AGTP."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from bespeak import App, BespeakError, Context, Refusal, ServiceClient, connect

AGENT = "7a4e" * 16
"""Agent-ID of the agency at its partners."""
REFUSED = {
    "partner_refused": "The inn, the airline or the car rental does not accept the booking.",
    "partner_unreachable": "The inn, the airline or the car rental could not be asked.",
}

app = App("Harbour Travel", server_id="travel.example", operator="Harbour Travel", contact="desk@travel.example")


@dataclass
class Partners:
    """Clients of the services that the agency books at."""

    inn: ServiceClient
    airline: ServiceClient
    cars: ServiceClient


@dataclass
class Stay:
    """A reserved room."""

    reservation_id: str
    price: int


@dataclass
class Ticket:
    """A seat on a flight, whose ticket can be printed from the time `issued` on."""

    ticket_id: str
    price: int
    issued: datetime


@dataclass
class Rental:
    """A rented car."""

    rental_id: str
    price: int


@app.lifespan
async def partners() -> AsyncIterator[Partners]:
    """Open the clients; each connects when it is used first."""
    async with (
        connect(os.environ.get("TRAVEL_INN", "agtp://127.0.0.1:4481"), agent_id=AGENT) as inn,
        connect(os.environ.get("TRAVEL_AIRLINE", "agtp://127.0.0.1:4482"), agent_id=AGENT) as airline,
        connect(os.environ.get("TRAVEL_CARS", "agtp://127.0.0.1:4483"), agent_id=AGENT) as cars,
    ):
        yield Partners(inn, airline, cars)


async def ask(context: Context, partner: ServiceClient, method: str, path: str) -> Any:
    """Make a call at a partner with the input of this one, and return its output.

    In a workflow, the request carries the key of its step. The partner does the same request with the same key once,
    so a step that is repeated after a crash books nothing twice.
    """
    key = context.request.headers.get("idempotency-key")
    try:
        reply = await partner.request(method, path, dict(context.input), idempotency_key=key)
    except BespeakError as error:
        raise Refusal("partner_unreachable", str(error)) from error
    if reply.error is not None:
        raise Refusal("partner_refused", reply.error.message, reason=reply.error.code)
    return reply.output


@app.endpoint("BOOK", "/stay", impact="reversible", confidence=0.9, errors=REFUSED)
async def book_stay(guest: str, room: str, arrival: date, departure: date, context: Context) -> Stay:
    """Reserve a room at the harbour inn.

    Outcome: The room is reserved, and its reservation_id and price are returned.
    """
    booked = await ask(context, context.state.inn, "BOOK", "/room")
    return Stay(booked["reservation_id"], booked["price"])


@app.endpoint("CANCEL", "/stays/{reservation_id}", impact="irreversible", confidence=0.9, errors=REFUSED)
async def cancel_stay(reservation_id: str, context: Context) -> dict[str, str]:
    """Cancel a reservation at the harbour inn.

    Outcome: The room is free again.
    """
    await ask(context, context.state.inn, "CANCEL", "/reservations/{reservation_id}")
    return {"reservation_id": reservation_id}


@app.endpoint("BOOK", "/flight", impact="reversible", confidence=0.9, errors=REFUSED)
async def book_flight(passenger: str, flight: str, context: Context) -> Ticket:
    """Buy a seat on a flight.

    Outcome: The passenger has a seat, and its ticket_id and price are returned.
    """
    booked = await ask(context, context.state.airline, "BOOK", "/seat")
    return Ticket(booked["ticket_id"], booked["price"], datetime.fromisoformat(booked["issued"]))


@app.endpoint("CANCEL", "/flights/{ticket_id}", impact="irreversible", confidence=0.9, errors=REFUSED)
async def cancel_flight(ticket_id: str, context: Context) -> dict[str, str]:
    """Cancel a seat on a flight.

    Outcome: The ticket is void, and the seat is free again.
    """
    await ask(context, context.state.airline, "CANCEL", "/tickets/{ticket_id}")
    return {"ticket_id": ticket_id}


@app.endpoint("BOOK", "/car", impact="reversible", confidence=0.9, errors=REFUSED)
async def book_car(driver: str, arrival: date, departure: date, context: Context) -> Rental:
    """Rent a car for the days of the trip.

    Outcome: A car waits for the driver, and its rental_id and price are returned.
    """
    booked = await ask(context, context.state.cars, "BOOK", "/car")
    return Rental(booked["rental_id"], booked["price"])


@app.endpoint("CANCEL", "/cars/{rental_id}", impact="irreversible", confidence=0.9, errors=REFUSED)
async def cancel_car(rental_id: str, context: Context) -> dict[str, str]:
    """Cancel a rented car.

    Outcome: The car is free on those days.
    """
    await ask(context, context.state.cars, "CANCEL", "/rentals/{rental_id}")
    return {"rental_id": rental_id}
