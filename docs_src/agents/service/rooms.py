from bespeak import App, Context

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("BOOK", "/room", impact="reversible", scopes=["booking:room"])
def book_room(guest: str, context: Context) -> dict[str, str | int]:
    """Reserve a room for a guest.

    Outcome: The guest has a room.
    """
    return {"guest": guest, "hops": len(context.principal.delegators)}
