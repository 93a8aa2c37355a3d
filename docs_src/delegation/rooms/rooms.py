from bespeak import App, Context

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("BOOK", "/room", impact="reversible", scopes=["booking:room"])
def book(guest: str, context: Context) -> dict[str, str]:
    """Book a room for a guest.

    Outcome: The guest has a room.
    """
    return {"guest": guest, "for": context.principal.delegators[0][:8] if context.principal.delegators else "itself"}
