"""The hotel's state: one SQLite file that all workers share. A confirmed booking is on disk."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS room (
    room_id TEXT PRIMARY KEY, beds INTEGER NOT NULL, floor INTEGER NOT NULL, price INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS reservation (
    reservation_id TEXT PRIMARY KEY, guest_id TEXT NOT NULL, room_id TEXT NOT NULL REFERENCES room,
    arrival TEXT NOT NULL, departure TEXT NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS reservation_by_room ON reservation (room_id, arrival);
CREATE TABLE IF NOT EXISTS entry (
    entry_id INTEGER PRIMARY KEY, reservation_id TEXT NOT NULL REFERENCES reservation, note TEXT NOT NULL
);
"""

_ROOMS = [
    (f"{floor}{door:02}", 1 + door % 3, floor, 8000 + 1500 * floor) for floor in (1, 2, 3) for door in range(1, 9)
]


def ledger_file() -> Path:
    """Return the path of the state: HOTEL_LEDGER, or a file in the system's temporary folder."""
    return Path(os.environ.get("HOTEL_LEDGER") or Path(tempfile.gettempdir()) / f"bespeak-hotel-{os.getuid()}.sqlite3")


class Ledger:
    """Rooms, reservations and notes. Each operation is one transaction on its own connection."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._transaction() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
            connection.executemany("INSERT OR IGNORE INTO room VALUES (?, ?, ?, ?)", _ROOMS)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction: committed at the end of the block, rolled back after an exception."""
        with closing(sqlite3.connect(self._file, timeout=10)) as connection, connection:
            connection.row_factory = sqlite3.Row
            yield connection

    def rooms(self, beds: int, arrival: str | None, departure: str | None) -> list[dict[str, Any]]:
        """Return the rooms with at least that many beds that are free on the given nights."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT * FROM room WHERE beds >= :beds AND (:arrival IS NULL OR :departure IS NULL OR NOT EXISTS ("
                "  SELECT 1 FROM reservation r WHERE r.room_id = room.room_id AND NOT r.cancelled"
                "  AND r.arrival < :departure AND r.departure > :arrival)) ORDER BY room_id",
                {"beds": beds, "arrival": arrival, "departure": departure},
            )
            return [dict(row) for row in rows]

    def has_room(self, room_id: str) -> bool:
        """Return True if the hotel has the room."""
        with self._transaction() as connection:
            return connection.execute("SELECT 1 FROM room WHERE room_id = ?", (room_id,)).fetchone() is not None

    def book(self, reservation_id: str, guest_id: str, room_id: str, arrival: str, departure: str) -> str | None:
        """Store a reservation. If another one overlaps, store nothing and return the date when that one ends."""
        with self._transaction() as connection:
            connection.execute("BEGIN IMMEDIATE")
            taken = connection.execute(
                "SELECT max(departure) AS free_from FROM reservation WHERE room_id = ? AND NOT cancelled"
                " AND arrival < ? AND departure > ?",
                (room_id, departure, arrival),
            ).fetchone()["free_from"]
            if taken is None:
                connection.execute(
                    "INSERT INTO reservation VALUES (?, ?, ?, ?, ?, 0)",
                    (reservation_id, guest_id, room_id, arrival, departure),
                )
        return str(taken) if taken is not None else None

    def reservation(self, reservation_id: str) -> dict[str, Any] | None:
        """Return a reservation, or None."""
        with self._transaction() as connection:
            found = connection.execute("SELECT * FROM reservation WHERE reservation_id = ?", (reservation_id,))
            row = found.fetchone()
        return None if row is None else {**dict(row), "cancelled": bool(row["cancelled"])}

    def cancel(self, reservation_id: str) -> None:
        """Cancel a reservation. Repeating it has no further effect."""
        with self._transaction() as connection:
            connection.execute("UPDATE reservation SET cancelled = 1 WHERE reservation_id = ?", (reservation_id,))

    def note(self, reservation_id: str, note: str) -> int:
        """Store a note about a stay and return its number."""
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO entry (reservation_id, note) VALUES (?, ?)", (reservation_id, note)
            )
        return cursor.lastrowid or 0
