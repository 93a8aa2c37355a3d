from bespeak import App, Context

app = App("Acme Hotel", server_id="hotel.acme.example", operator="Acme", contact="ops@acme.example")
board: dict[str, str] = {}


@app.recipient("front-desk")
async def show_at_desk(message: str, severity: str, sender: str, context: Context) -> None:
    """Show a message on the board of the front desk."""
    key = context.request.headers["idempotency-key"]  # the same in every attempt: pass it on to whoever shows it
    board.setdefault(key, f"[{severity}] {message} ({sender[:8]})")


@app.endpoint("FETCH", "/board", impact="informational")
def fetch_board() -> list[str]:
    """Fetch what the board of the front desk shows.

    Outcome: The messages on the board are returned.
    """
    return list(board.values())
