from datetime import date
from typing import Annotated

from fastapi import FastAPI, HTTPException, Security
from fastapi.security import OAuth2PasswordBearer, SecurityScopes
from pydantic import BaseModel

app = FastAPI(title="Clinic", contact={"name": "Acme", "email": "ops@acme.example"})
oauth = OAuth2PasswordBearer(tokenUrl="token", scopes={"slots:book": "Book slots."}, auto_error=False)
FREE = {date(2030, 5, 6): ["09:00", "09:30"], date(2030, 5, 7): ["14:00"]}


def authorize(needed: SecurityScopes, token: Annotated[str | None, Security(oauth)]) -> None:
    granted = (token or "").split()  # stands for reading a real token
    if not set(needed.scopes) <= set(granted):
        raise HTTPException(403, f"needs {needed.scope_str}")


class Slots(BaseModel):
    slots: list[str]


class Booking(BaseModel):
    day: date
    time: str
    patient: str


class Booked(BaseModel):
    booked: str


@app.get("/slots")
def find_slots(day: date) -> Slots:
    """Find the free slots of a day."""
    return Slots(slots=FREE.get(day, []))


@app.post(
    "/slots",
    dependencies=[Security(authorize, scopes=["slots:book"])],
    responses={403: {"description": "The scope is missing."}, 409: {"description": "Somebody else has booked it."}},
)
def book_slot(booking: Booking) -> Booked:
    """Book a free slot for a patient, who is told by text message. This cannot be undone."""
    if booking.time not in FREE.get(booking.day, []):
        raise HTTPException(409, f"{booking.day} {booking.time} is not free.")
    FREE[booking.day].remove(booking.time)
    return Booked(booked=f"{booking.day} {booking.time} for {booking.patient}")
