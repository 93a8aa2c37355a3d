"""A car rental with a single car: `bespeak serve examples/travel/partners/cars.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from uuid import uuid4

from bespeak import App, Refusal

app = App(
    "Harbour Cars",
    server_id="cars.example",
    operator="Harbour Cars",
    contact="keys@cars.example",
)


@dataclass
class Rental:
    """A rented car."""

    rental_id: str
    driver: str
    arrival: date
    departure: date
    price: int


rentals: dict[str, Rental] = {}


@app.endpoint(
    "BOOK",
    "/car",
    impact="reversible",
    confidence=0.95,
    inline=True,  # in the event loop, so that one call at a time looks at the rentals
    errors={"car_taken": "The car is rented on those days."},
)
def book_car(driver: str, arrival: date, departure: date) -> Rental:
    """Rent the car to a driver.

    Outcome: The car waits for the driver, and its rental_id and price are returned.
    """
    if any(arrival < one.departure and one.arrival < departure for one in rentals.values()):
        raise Refusal("car_taken", "Our only car is rented on those days.")
    made = Rental(str(uuid4()), driver, arrival, departure, 40 * (departure - arrival).days)
    return rentals.setdefault(made.rental_id, made)


@app.endpoint(
    "CANCEL",
    "/rentals/{rental_id}",
    impact="irreversible",
    confidence=0.95,
    errors={"rental_unknown": "The rental has no such booking."},
)
def cancel_car(rental_id: str) -> Rental:
    """Take a booking of the car back.

    Outcome: The car is free on those days.
    """
    if rental_id not in rentals:
        raise Refusal("rental_unknown", f"There is no rental {rental_id}.")
    return rentals.pop(rental_id)


@app.endpoint("QUERY", "/rentals", impact="informational", confidence=0.95)
def find_rentals(driver: str) -> list[Rental]:
    """Find what is rented to a driver.

    Outcome: The rentals of the driver are returned.
    """
    return [one for one in rentals.values() if one.driver == driver]
