from typing import Annotated

from msgspec import Meta

from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")

BEDS = {"101": 1, "102": 2, "103": 3}


@app.endpoint("QUERY", "/rooms", impact="informational")
def find_rooms(beds: Annotated[int, Meta(ge=1, le=3)] = 1) -> dict[str, list[str]]:
    """Find rooms with enough beds.

    Outcome: The rooms that fit are returned; nothing has been booked.

    Args:
        beds: How many people sleep in the room.
    """
    return {"rooms": [room for room, size in BEDS.items() if size >= beds]}
