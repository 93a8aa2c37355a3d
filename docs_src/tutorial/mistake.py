from bespeak import App, Refusal

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("CANCEL", "/bookings/{booking_id}", impact="irreversible", scopes=["booking:room"])
def cancel_booking(booking_id: str) -> dict[str, str]:
    """Cancel one booking.

    Outcome: The booking no longer exists.
    """
    raise Refusal("too_late", "The night is over.")
