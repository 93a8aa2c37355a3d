from bespeak import App

app = App("Acme Desk", server_id="desk.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("TRIAGE", "/bills", impact="reversible")
def take_bill(topic: str, amount: int = 0) -> dict[str, str]:
    """Take a question about a bill.

    Outcome: The question is with the accountants.
    """
    return {"desk": "accounts"}


@app.endpoint("TRIAGE", "/questions", impact="reversible")
def take_question(topic: str, amount: int = 0) -> dict[str, str]:
    """Take any question.

    Outcome: The question is with the reception.
    """
    return {"desk": "reception"}
