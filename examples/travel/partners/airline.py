"""An airline with a few seats: `bespeak serve examples/travel/partners/airline.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from bespeak import App, Refusal

app = App(
    "Coast Air",
    server_id="air.example",
    operator="Coast Air",
    contact="tickets@air.example",
)

SEATS = {"CA 17": 3, "CA 18": 3}
"""Flights, and how many passengers each takes."""
tickets: dict[str, str] = {}
"""Tickets that are valid, and the flight of each."""


@dataclass
class Ticket:
    """A seat on a flight."""

    ticket_id: str
    price: int
    issued: datetime
    """Time from which the ticket can be printed."""


@app.endpoint(
    "BOOK",
    "/seat",
    impact="reversible",
    confidence=0.95,
    inline=True,  # in the event loop, so that one call at a time counts the seats
    errors={"flight_full": "Every seat is taken.", "flight_unknown": "The airline has no such flight."},
)
def book_seat(passenger: str, flight: str) -> Ticket:
    """Give a passenger a seat on a flight.

    Outcome: The seat is taken, and its ticket_id and price are returned.
    """
    if flight not in SEATS:
        raise Refusal("flight_unknown", f"Coast Air has no flight {flight}.")
    if list(tickets.values()).count(flight) >= SEATS[flight]:
        raise Refusal("flight_full", f"Every seat of {flight} is taken.")
    ticket = Ticket(str(uuid4()), 180, datetime.now(UTC) + timedelta(seconds=3))
    tickets[ticket.ticket_id] = flight
    return ticket


@app.endpoint(
    "CANCEL",
    "/tickets/{ticket_id}",
    impact="irreversible",
    confidence=0.95,
    errors={"ticket_unknown": "The airline has no such ticket."},
)
def cancel_ticket(ticket_id: str) -> dict[str, str]:
    """Take a ticket back.

    Outcome: The ticket is void, and its seat is free.
    """
    if tickets.pop(ticket_id, None) is None:
        raise Refusal("ticket_unknown", "This ticket is not valid.")
    return {"ticket_id": ticket_id}
