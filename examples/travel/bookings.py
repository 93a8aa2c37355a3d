"""The agency's own bookings: one SQLite file beside the agency. What is saved here survives a crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("bookings.sqlite3")


@dataclass
class Trip:
    """A trip that the agency has booked for the agent of a traveller."""

    trip_id: str
    run_id: str
    agent_id: str
    name: str
    reservation_id: str
    ticket_id: str
    rental_id: str
    price: int
    booked: datetime
    state: str = "booked"


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(FILE, timeout=10)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS trip (trip_id TEXT PRIMARY KEY, data TEXT NOT NULL)")
        yield connection


def save(trip: Trip) -> Trip:
    """Save a trip and return it. To save it again does no harm, so a step may be repeated after a crash."""
    with _opened() as connection:
        connection.execute("REPLACE INTO trip VALUES (?, ?)", (trip.trip_id, msgspec.json.encode(trip).decode()))
    return trip


def find(trip_id: str) -> Trip | None:
    """Return a trip by its id."""
    with _opened() as connection:
        row = connection.execute("SELECT data FROM trip WHERE trip_id = ?", (trip_id,)).fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=Trip)


def between(start: date, end: date) -> list[Trip]:
    """Return the trips that were booked from one day up to another, which is not included."""
    with _opened() as connection:
        rows = connection.execute("SELECT data FROM trip").fetchall()
    trips = [msgspec.json.decode(row[0], type=Trip) for row in rows]
    return sorted((one for one in trips if start <= one.booked.date() < end), key=lambda one: one.booked)
