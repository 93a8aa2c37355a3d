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

rentals: list[tuple[date, date]] = []
"""Days for which the car is rented."""


@dataclass
class Rental:
    """A rented car."""

    rental_id: str


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

    Outcome: The car waits for the driver, and its rental_id is returned.
    """
    if any(arrival < end and start < departure for start, end in rentals):
        raise Refusal("car_taken", "Our only car is rented on those days.")
    rentals.append((arrival, departure))
    return Rental(str(uuid4()))
