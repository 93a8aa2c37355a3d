from datetime import date, timedelta
from typing import TypedDict

from bespeak import App, Context, Run, StepError

app = App("Acme Trips", server_id="trips.acme.example", operator="Acme", contact="ops@acme.example")
rooms: dict[str, str] = {}


class Trip(TypedDict):
    room: str
    price: int
    paid: bool


@app.endpoint("BOOK", "/rooms", impact="reversible")
async def book_room(guest: str, arrival: date) -> dict[str, str]:
    """Book a room.

    Outcome: The room is booked.
    """
    rooms[f"r-{guest}"] = guest
    return {"reservation_id": f"r-{guest}"}


@app.endpoint("CANCEL", "/rooms/{reservation_id}", impact="reversible")
async def cancel_room(reservation_id: str) -> dict[str, str]:
    """Cancel a room.

    Outcome: The room is free again.
    """
    return {"guest": rooms.pop(reservation_id, "")}


@app.endpoint("CONFIRM", "/payments", impact="reversible")
async def confirm_payment(run_id: str, amount: int, context: Context) -> dict[str, str]:
    """Tell a trip that it is paid.

    Outcome: The trip goes on.
    """
    context.signal(run_id, "payment", {"amount": amount})
    return {"told": run_id}


def fetch_fare(arrival: date, idempotency_key: str) -> int:
    """Ask an airline. It may be asked again after a crash, with the same key."""
    return 80 + arrival.day


@app.workflow("trip")
async def trip(run: Run, guest: str, arrival: date) -> Trip:
    """Book a trip, and undo it if any part fails.

    Outcome: The room is booked, and the trip is paid.
    """
    room = await run.call("BOOK", "/rooms", guest=guest, arrival=arrival, undo=("CANCEL", "/rooms/{reservation_id}"))
    fare = await run.step(fetch_fare, arrival, retries=3)
    try:
        paid = await run.wait_for("payment", timeout=timedelta(days=2))
    except StepError:
        return {"room": room["reservation_id"], "price": fare, "paid": False}
    if paid["amount"] < fare:
        raise ValueError(f"{paid['amount']} is not enough")  # the room is cancelled
    return {"room": room["reservation_id"], "price": fare, "paid": True}


app.endpoint("BOOK", "/trips", impact="reversible")(trip)
