"""The handlers of menu.agis: one function per endpoint, bound in bespeak.toml."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import count

from bespeak import Refusal

DISHES = [
    {"name": "Carciofi alla giudia", "course": "starter", "price": 9.5},
    {"name": "Tagliatelle al ragu", "course": "main", "price": 16.0},
    {"name": "Tiramisu", "course": "dessert", "price": 7.0},
]
SEATS = {1: 2, 2: 2, 3: 4, 4: 8}
"""Number of seats of each table."""


@dataclass
class Reservation:
    reservation_id: str
    table: int
    evening: date
    seated: bool = False

    def told(self) -> dict[str, object]:
        return {"reservation_id": self.reservation_id, "table": self.table}


RESERVATIONS: dict[str, Reservation] = {}
_numbers = count(1)


def find_dishes(course: str | None = None) -> dict[str, object]:
    return {"dishes": [dish for dish in DISHES if course in (None, dish["course"])]}


def reserve_table(name: str, guests: int, evening: date, wishes: str = "") -> dict[str, object]:
    taken = {held.table for held in RESERVATIONS.values() if held.evening == evening}
    table = next((table for table, seats in SEATS.items() if seats >= guests and table not in taken), None)
    if table is None:
        raise Refusal("fully_booked", f"There is no table for {guests} on {evening}.")
    reservation = Reservation(f"R-{next(_numbers)}", table, evening)
    RESERVATIONS[reservation.reservation_id] = reservation
    return reservation.told()


def seat_party(reservation_id: str) -> dict[str, object]:
    reservation = RESERVATIONS.get(reservation_id)
    if reservation is None:
        raise Refusal("reservation_unknown", f"There is no reservation {reservation_id}.")
    reservation.seated = True
    return reservation.told()


def cancel_reservation(reservation_id: str) -> dict[str, object]:
    reservation = RESERVATIONS.pop(reservation_id, None)
    if reservation is None:
        raise Refusal("reservation_unknown", f"There is no reservation {reservation_id}.")
    return reservation.told()
