"""The reception: one handler per endpoint, bound from the TOML files and from `app.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Annotated
from uuid import UUID, uuid4

from msgspec import UNSET, Meta, UnsetType

from bespeak import Refusal
from hotel.ledger import Ledger, ledger_file


@dataclass
class Booked:
    """A confirmed booking."""

    reservation_id: UUID


@dataclass
class Room:
    """A room as guests see it; the price is in cents per night."""

    room_id: str
    beds: int
    floor: int
    price: int


@dataclass
class Rooms:
    """The matching rooms."""

    rooms: list[Room]


@dataclass
class Reservation:
    """A reservation as stored in the ledger."""

    reservation_id: UUID
    guest_id: UUID
    room_id: str
    arrival: date
    departure: date
    cancelled: bool


@dataclass
class Entry:
    """A stored note."""

    entry_id: int


@lru_cache(maxsize=1)
def _ledger() -> Ledger:
    return Ledger(ledger_file())


def book_room(guest_id: UUID, room_id: str, arrival: date, departure: date) -> Booked:
    """Reserve a room for a guest from arrival to departure.

    Outcome: A confirmed reservation exists and its reservation_id is returned.
    """
    if departure <= arrival:
        raise Refusal("invalid_dates", "The departure must come after the arrival.")
    if not _ledger().has_room(room_id):
        raise Refusal("room_unavailable", f"The hotel has no room {room_id}.", room_id=room_id)
    reservation_id = uuid4()
    free_from = _ledger().book(str(reservation_id), str(guest_id), room_id, str(arrival), str(departure))
    if free_from is not None:
        raise Refusal("room_unavailable", "The room is taken on those nights.", next_free=free_from)
    return Booked(reservation_id)


def find_rooms(
    beds: Annotated[int, Meta(ge=1, le=3)] = 1,
    arrival: date | UnsetType = UNSET,
    departure: date | UnsetType = UNSET,
) -> Rooms:
    """Find rooms with enough beds that are free on the given nights.

    Outcome: The rooms that fit are returned; nothing has been reserved.
    """
    found = _ledger().rooms(beds, str(arrival) if arrival else None, str(departure) if departure else None)
    return Rooms([Room(**room) for room in found])


def find_availability(arrival: date, departure: date) -> Rooms:
    """Find rooms that are free on the given nights.

    Outcome: The free rooms are returned; nothing has been reserved.
    """
    return find_rooms(1, arrival, departure)


def fetch_reservation(reservation_id: UUID) -> Reservation:
    """Fetch one reservation by its id.

    Outcome: The reservation is returned as the hotel has it.
    """
    found = _ledger().reservation(str(reservation_id))
    if found is None:
        raise Refusal("reservation_unknown", "The hotel has no such reservation.")
    return Reservation(
        reservation_id=UUID(found["reservation_id"]),
        guest_id=UUID(found["guest_id"]),
        room_id=found["room_id"],
        arrival=date.fromisoformat(found["arrival"]),
        departure=date.fromisoformat(found["departure"]),
        cancelled=found["cancelled"],
    )


def cancel_reservation(reservation_id: UUID) -> Reservation:
    """Cancel one reservation and give its room back.

    Outcome: The reservation is cancelled and its room is free on those nights.
    """
    fetch_reservation(reservation_id)
    _ledger().cancel(str(reservation_id))
    return fetch_reservation(reservation_id)


def write_note(reservation_id: UUID, note: Annotated[str, Meta(min_length=1, max_length=500)]) -> Entry:
    """Record a note about the stay of a reservation.

    Outcome: The note is in the ledger and its number is returned.
    """
    fetch_reservation(reservation_id)
    return Entry(_ledger().note(str(reservation_id), note))


def house_rules() -> Iterator[str]:
    """Yield the answers to common questions of guests."""
    yield "Check-in begins at 15:00 and check-out ends at 11:00."
    yield "Breakfast is served from 07:00 to 10:30 on the ground floor and is part of the price."
    yield "Dogs are welcome on the first floor for 12.00 a night."
    yield "A reservation can be cancelled free of charge until the day before arrival."
    yield "Parking behind the house costs 9.00 a night; four places have chargers for electric cars."
