from bespeak import App

app = App("Acme Desk", server_id="desk.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("CALCULATE", "/risk", impact="informational")
def rate(balance: float) -> dict[str, float]:
    """Rate the risk of a customer by the balance.

    Outcome: The score is 0 to 1; a higher one is a higher risk.
    """
    return {"score": min(max(-balance / 1000, 0.0), 1.0)}
