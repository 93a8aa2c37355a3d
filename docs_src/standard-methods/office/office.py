from bespeak import App

app = App("Acme Office", server_id="office.acme.example", operator="Acme", contact="ops@acme.example")
ledger: list[str] = []


@app.endpoint("LOG", "/", impact="irreversible")
def write_line(event_type: str, data: dict[str, str]) -> dict[str, int]:
    """Log an event in the ledger of the office.

    Outcome: The event is a line of the ledger, and its number is returned.
    """
    ledger.append(f"{event_type}: {data}")
    return {"line": len(ledger)}
