"""The contract implemented with bespeak as BESPEAK_BENCH_TOOLS tools of MCP. Nobody is asked before a booking, because
it can be undone.
"""

import os
from datetime import date
from typing import Annotated, TypedDict
from uuid import UUID

import msgspec

import contract
from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


class Reservation(TypedDict):
    """The output."""

    reservation_id: UUID


async def book_room(
    guest_id: UUID, room_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)], arrival: date, departure: date
) -> Reservation:
    """Reserve a room for the named guest at the named property.

    Outcome: A confirmed reservation exists and its reservation_id is returned.
    """
    return await contract.book_room(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]


for number, name in enumerate(contract.tool_names(int(os.environ["BESPEAK_BENCH_TOOLS"]))):
    path = contract.PATH if number == 0 else f"/hotels/h{number}/room"
    app.endpoint(contract.METHOD, path, impact="reversible", scopes=[contract.SCOPE], mcp_tool_name=name)(book_room)
