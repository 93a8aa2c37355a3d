import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bespeak import App, Policies, Refusal

app = App(
    "Rooms",
    server_id="rooms.example",
    operator="Acme",
    contact="ops@acme.example",
    policies=Policies(scope_required_for_invocation=False),
)


@dataclass
class Room:
    room_id: str
    beds: int


@app.endpoint("QUERY", "/rooms", impact="informational", errors={"closed": "The hotel has closed."})
async def find_rooms(beds: int = 1, most: int = 3) -> AsyncIterator[Room]:
    """Find rooms with a number of beds, in one hotel after another.

    Outcome: The rooms are returned, each as soon as it is found.
    """
    for number in range(1, most + 1):
        await asyncio.sleep(0.01)  # ask the next hotel
        if number == 4:
            raise Refusal("closed")
        yield Room(f"{number}0{beds}", beds)
