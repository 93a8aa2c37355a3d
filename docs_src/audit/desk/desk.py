from bespeak import App

app = App("Acme Desk", server_id="desk.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("BOOK", "/room", impact="reversible")
def book_room(room: str, guest: str) -> dict[str, str]:
    """Reserve a room for the named guest.

    Outcome: The room is reserved and the number of the reservation is returned.
    """
    return {"reservation": f"R-{room}"}
