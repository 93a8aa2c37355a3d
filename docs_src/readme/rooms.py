from bespeak import App

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("QUERY", "/rooms", impact="informational")
def find_rooms(beds: int = 1) -> dict[str, list[str]]:
    """Find rooms with enough beds.

    Outcome: The rooms that fit are returned.
    """
    return {"rooms": [room for room, size in {"101": 1, "102": 2, "103": 3}.items() if size >= beds]}
