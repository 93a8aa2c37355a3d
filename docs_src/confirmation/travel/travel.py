from bespeak import App

app = App("Acme Travel", server_id="travel.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("PURCHASE", "/ticket", impact="irreversible")
def buy_ticket(to: str, price: float) -> dict[str, str]:
    """Purchase a ticket that cannot be returned.

    Outcome: The ticket is paid for and its number is returned.
    """
    return {"ticket": f"{to.upper()}-0001"}


@app.endpoint("QUERY", "/tickets", impact="informational")
def find_tickets(to: str) -> dict[str, list[float]]:
    """Find the prices of tickets.

    Outcome: The prices of the tickets on sale are returned.
    """
    return {"prices": [420.0, 99.0]}
