from bespeak import App, Refusal

app = App("Acme Plant", server_id="plant.acme.example", operator="Acme", contact="ops@acme.example")
MEASURED = {"b-17": [0.2, 0.4, 0.3], "b-18": [0.2, 0.9, 0.3]}


@app.procedure("quality-check", errors=["batch_unknown"], idempotent=True)
def check_quality(batch: str, limit: float = 0.5) -> dict[str, bool]:
    """Check that no measurement of a batch exceeds a limit."""
    if batch not in MEASURED:
        raise Refusal("batch_unknown", f"Batch {batch} has not been measured.")
    return {"passed": max(MEASURED[batch]) <= limit}


@app.endpoint("SUSPEND", "/line", impact="reversible")
def stop_line(line: str) -> dict[str, str]:
    """Suspend the work on a line.

    Outcome: The line stands still.
    """
    return {"stopped": line}


@app.endpoint("BOOK", "/cleaning", impact="reversible")
def book_cleaning(line: str) -> dict[str, str]:
    """Book the cleaning of a line.

    Outcome: The cleaners come on the returned day.
    """
    return {"day": "Friday"}
