"""The contract implemented with FastAPI on uvicorn: pydantic in and out, uvloop, httptools. Usage: fastapi_app.py
PORT
"""

import sys
from datetime import date
from typing import Annotated
from uuid import UUID

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, StringConstraints

from contract import PATH, THREADED, book_hall, book_room

app = FastAPI()


class Booking(BaseModel):
    """The input."""

    model_config = ConfigDict(extra="forbid")

    guest_id: UUID
    room_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    arrival: date
    departure: date


class Reservation(BaseModel):
    """The output."""

    reservation_id: UUID


@app.post(PATH)
async def book(booking: Booking) -> Reservation:
    """Reserve a room."""
    made = await book_room(booking.guest_id, booking.room_id, booking.arrival, booking.departure)  # type: ignore[arg-type]
    return Reservation(**made)  # type: ignore[arg-type]


@app.post(THREADED)
def book_in_thread(booking: Booking) -> Reservation:
    """Reserve a hall, in a thread."""
    made = book_hall(booking.guest_id, booking.room_id, booking.arrival, booking.departure)  # type: ignore[arg-type]
    return Reservation(**made)  # type: ignore[arg-type]


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
