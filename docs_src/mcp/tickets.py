from bespeak import App, Refusal

app = App("Acme Tickets", server_id="tickets.acme.example", operator="Acme", contact="ops@acme.example")
sold: set[str] = set()


@app.endpoint("QUERY", "/seats", impact="informational", idempotent=True, scopes=["seats:read"])
def find_seats() -> dict[str, list[str]]:
    """Find the seats that are free.

    Outcome: The free seats are returned.
    """
    return {"seats": [seat for seat in ("A1", "A2") if seat not in sold]}


@app.endpoint(
    "PURCHASE",
    "/seat",
    impact="irreversible",
    scopes=["seats:buy"],
    errors={"sold": "The seat is sold."},
    inline=True,  # in the event loop: one call at a time
)
def buy_seat(seat: str) -> dict[str, str]:
    """Buy a ticket for a seat.

    Outcome: The ticket is paid for and its number is returned.
    """
    if seat in sold:
        raise Refusal("sold", "Somebody was faster.", free=["A2"])
    sold.add(seat)
    return {"ticket": f"T-{seat}"}
