from bespeak import App

app = App("Acme Desk", server_id="desk.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("SUMMARIZE", "/letter", impact="informational", cost={"tokens": 2000, "USD": "0.04"})
def sum_up(text: str) -> dict[str, str]:
    """Summarize a letter for somebody in a hurry.

    Outcome: The first sentence of the letter is returned.
    """
    return {"summary": text.partition(".")[0] + "."}
