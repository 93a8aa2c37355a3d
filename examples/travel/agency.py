"""The travel agency. Each function below is behind a standard method: RUN, PURCHASE, SUBMIT, CANCEL and others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import bookings
from bookings import Trip
from endpoints import REFUSED, Rental, Stay, Ticket, app

from bespeak import Chart, Context, EntityChange, Price, Refusal, Report, Run, Sold, Table, Unknown

SCREEN = Path(__file__).with_name("front-desk.txt")
"""What the screen of the front desk shows."""
LIMIT = 900
"""EUR above which the front desk must agree to a trip."""
ERRORS = {"too_dear": "The front desk does not agree to the price.", **REFUSED}


@dataclass
class Traveller:
    """A person who travels."""

    name: str
    passport: str
    expires: date


@app.entity("traveller", model=Traveller)
async def check_passport(change: EntityChange[Traveller]) -> None:
    """Take nobody whose passport has expired.

    Errors:
        passport_expired: The passport is not valid any more.
    """
    if change.action == "register" and change.data.expires < datetime.now(UTC).date():
        raise Refusal("passport_expired", f"The passport of {change.data.name} expired on {change.data.expires}.")


@app.workflow("trip", errors=ERRORS)
async def book_trip(run: Run, traveller_id: str, *, room: str, flight: str, arrival: date, departure: date) -> Trip:
    """Book a stay, a flight and a car together, or none of them.

    Outcome: The trip is booked and paid, and its documents are on their way.
    """
    found = await run.call("QUERY", "/entities", entity_id=traveller_id)
    name: str = found["entities"][0]["data"]["name"]
    days: dict[str, Any] = {"arrival": arrival, "departure": departure}
    stay, ticket, rental = await run.together(
        run.call(
            "BOOK", "/stay", guest=name, room=room, **days, returns=Stay, undo=("CANCEL", "/stays/{reservation_id}")
        ),
        run.call(
            "BOOK", "/flight", passenger=name, flight=flight, returns=Ticket, undo=("CANCEL", "/flights/{ticket_id}")
        ),
        run.call("BOOK", "/car", driver=name, **days, returns=Rental, undo=("CANCEL", "/cars/{rental_id}")),
    )
    price = stay.price + ticket.price + rental.price
    question = f"May the trip of {name} cost {price} EUR?"
    if price > LIMIT and not await run.ask("front-desk", question, within=timedelta(hours=8)):
        raise Refusal("too_dear", f"The front desk does not agree to {price} EUR.")
    trip_id, agent_id, booked = f"T-{str(run.uuid())[:8]}", run.agent_id, run.now()
    ids = stay.reservation_id, ticket.ticket_id, rental.rental_id
    made = Trip(trip_id, run.id, agent_id, name, *ids, price, booked)
    trip = await run.step(bookings.save, made, undo=("CANCEL", "/trips/{trip_id}"))
    await run.wait_for("payment", timeout=timedelta(days=2))
    trip = await run.step(bookings.save, replace(trip, state="paid"))
    await run.sleep(until=ticket.issued)
    await run.call("SUBMIT", target="vouchers", payload={"trip_id": trip_id})
    return trip


app.endpoint("BOOK", "/trip", impact="reversible", confidence=0.9, errors=ERRORS)(book_trip)


def find_trip(trip_id: str, context: Context) -> Trip | None:
    """Return a trip of the caller. Nobody learns of the trips of others."""
    trip = bookings.find(trip_id)
    return trip if trip is not None and trip.agent_id == context.agent_id else None


@app.endpoint("CANCEL", "/trips/{trip_id}", impact="irreversible", confidence=0.9)
def withdraw_trip(trip_id: str, context: Context) -> dict[str, str]:
    """Cancel a trip that is not paid.

    Outcome: The trip cannot be paid any more.

    Errors:
        trip_closed: There is no such trip, or it is paid.
    """
    trip = find_trip(trip_id, context)
    if trip is None or trip.state == "paid":
        raise Refusal("trip_closed", f"Trip {trip_id} is not open.")
    return {"state": bookings.save(replace(trip, state="withdrawn")).state}


@app.sale("trip-fare")
class Fare:
    """Sell a trip that is booked."""

    def price(self, trip_id: str, context: Context) -> Price:
        """Return the price of a trip.

        Errors:
            trip_closed: There is no such trip, or it is paid.
        """
        trip = find_trip(trip_id, context)
        if trip is None or trip.state != "booked":
            raise Refusal("trip_closed", f"There is nothing to pay for trip {trip_id}.")
        return Price(f"{trip.price}.00", "EUR")

    def fulfil(self, trip_id: str, context: Context) -> dict[str, str]:
        """Tell the trip that it is paid; it goes on if the money is taken."""
        trip = find_trip(trip_id, context)
        assert trip is not None, "it has a price"
        context.signal(trip.run_id, "payment")
        return {"trip_id": trip_id}

    def refund(self, trip_id: str, sold: Sold, context: Context) -> Price:
        """Pay the price of a cancelled trip back.

        Errors:
            trip_stands: The trip is not cancelled.
        """
        trip = find_trip(trip_id, context)
        if trip is None or trip.state != "cancelled":
            raise Refusal("trip_stands", f"Cancel booking:{trip_id} first.")
        return sold.asked


@app.queue("vouchers")
async def print_documents(trip_id: str, context: Context) -> dict[str, str]:
    """Write the travel documents, and send them to the agent of the traveller.

    Errors:
        trip_unknown: The agent has no such trip.
    """
    trip = find_trip(trip_id, context)
    if trip is None:
        raise Refusal("trip_unknown", f"There is no trip {trip_id}.")
    document = f"{trip.name}: room {trip.reservation_id[:8]}, seat {trip.ticket_id[:8]}, car {trip.rental_id[:8]}"
    context.notify(trip.agent_id, {"trip_id": trip_id, "documents": document})
    return {"documents": document}


@app.checks("booking")
def check_booking(trip_id: str, context: Context) -> Trip:
    """Tell how a trip stands."""
    trip = find_trip(trip_id, context)
    if trip is None:
        raise Unknown
    return trip


@app.cancels("booking")
async def cancel_booking(trip_id: str, context: Context) -> dict[str, str]:
    """Cancel a trip that is paid."""
    trip = find_trip(trip_id, context)
    if trip is None:
        raise Unknown
    if trip.state != "paid":
        raise Refusal("not-cancellable", f"Trip {trip_id} is {trip.state}.")
    return {"run_id": context.start("give-back", trip_id=trip_id)}


@app.workflow("give-back", errors=REFUSED)
async def give_back(run: Run, trip_id: str) -> Trip:
    """Give back the room, the seat and the car of a trip."""
    trip = await run.step(bookings.find, trip_id)
    assert trip is not None
    await run.together(
        run.call("CANCEL", "/stays/{reservation_id}", reservation_id=trip.reservation_id),
        run.call("CANCEL", "/flights/{ticket_id}", ticket_id=trip.ticket_id),
        run.call("CANCEL", "/cars/{rental_id}", rental_id=trip.rental_id),
    )
    return await run.step(bookings.save, replace(trip, state="cancelled"))


@app.recipient("front-desk")
def show_at_desk(message: str, reference: str) -> None:
    """Show what is sent to the front desk on its screen."""
    with SCREEN.open("a") as screen:
        screen.write(f"{reference} {message}\n")


@app.report("weekly-sales", scopes=["sales:read"])
def weekly_sales(start: date, end: date) -> Report:
    """Summarise the trips that were booked in a range of days."""
    trips = bookings.between(start, end)
    states = {state: float(sum(one.price for one in trips if one.state == state)) for state in ("paid", "cancelled")}
    rows = [{"trip": one.trip_id, "name": one.name, "price": one.price, "state": one.state} for one in trips]
    return Report(
        title="Weekly sales", figures={"Trips": len(trips)}, charts=[Chart("EUR", states)], tables=[Table(rows)]
    )


@app.workflow("close-day", every="1 day at 02:00 Europe/Berlin", scopes=["sales:read"])
async def close_day(run: Run, planned: datetime) -> dict[str, int]:
    """Count the trips of the day that has ended, and tell the manager."""
    day = (planned - timedelta(hours=12)).date()
    trips = await run.step(bookings.between, day, day + timedelta(days=1))
    paid = sum(trip.price for trip in trips if trip.state == "paid")
    await run.call("NOTIFY", recipient="manager", content=f"{day}: {len(trips)} trips, {paid} EUR are paid.")
    return {"trips": len(trips), "paid": paid}
