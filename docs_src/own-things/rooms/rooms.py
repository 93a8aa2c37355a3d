from bespeak import App, Context, Refusal, Unknown

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")
GUEST = "0a3f" * 16
bookings = {
    "77": {"guest": GUEST, "room": "12", "state": "booked"},
    "78": {"guest": GUEST, "room": "14", "state": "past"},
}


def find(booking_id: str, context: Context) -> dict[str, str]:
    booking = bookings.get(booking_id)
    if booking is None or booking["guest"] != context.agent_id:
        raise Unknown
    return booking


@app.cancels("booking")
async def cancel_booking(booking_id: str, context: Context, reason: str | None = None) -> dict[str, str]:
    """Cancel a booking.

    Errors:
        guest_arrived: The guest has arrived.
    """
    booking = find(booking_id, context)
    if booking["state"] == "cancelled":
        raise Refusal("already-cancelled", f"Booking {booking_id} is cancelled.")
    if booking["state"] == "past":
        raise Refusal("guest_arrived", "The guest has arrived.")
    booking["state"] = "cancelled"
    context.notify(booking["guest"], {"freed": booking["room"], "reason": reason})
    return {"room": booking["room"]}


@app.checks("booking")
async def check_booking(booking_id: str, context: Context) -> dict[str, str]:
    """Tell the state of a booking."""
    return find(booking_id, context)
