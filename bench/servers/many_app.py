"""BESPEAK_BENCH_ENDPOINTS endpoints in one App: half on literal paths, half on templates."""

import os
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec

import contract
from bespeak import App

app = App("Many Rooms", server_id="many.acme.example", operator="Acme", contact="ops@acme.example")


class Reservation(TypedDict):
    """The output."""

    reservation_id: UUID


def book(longest: int) -> Callable[..., Any]:
    """Make a handler whose input schema differs from those of all other hotels."""
    room = Annotated[str, msgspec.Meta(min_length=1, max_length=longest)]

    async def book_room(guest_id: UUID, room_id: room, arrival: date, departure: date) -> Reservation:  # type: ignore[valid-type]
        """Reserve a room for the named guest at the named property.

        Outcome: A confirmed reservation exists and its reservation_id is returned.
        """
        return await contract.book_room(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]

    return book_room


for number in range(int(os.environ["BESPEAK_BENCH_ENDPOINTS"])):
    path = contract.path_of(number)
    app.endpoint(contract.METHOD, path, impact="irreversible", confidence=0.95, scopes=[contract.SCOPE])(
        book(64 + number)
    )
