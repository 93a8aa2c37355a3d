from bespeak import App, Context

app = App("Acme Office", server_id="office.acme.example", operator="Acme", contact="ops@acme.example")
ledger: list[str] = []


@app.endpoint("LOG", "/", impact="irreversible")
def write_line(event_type: str, data: dict[str, str]) -> dict[str, int]:
    """Log an event in the ledger of the office.

    Outcome: The event is a line of the ledger, and its number is returned.
    """
    ledger.append(f"{event_type}: {data}")
    return {"line": len(ledger)}


@app.endpoint("BOOK", "/room", impact="reversible")
def book_room(room: str, host: str, context: Context) -> dict[str, str]:
    """Book a meeting room.

    Outcome: The room is booked, and its host has a message about it.
    """
    context.notify(host, {"room": room, "booked_by": context.agent_id})
    return {"room": room}
