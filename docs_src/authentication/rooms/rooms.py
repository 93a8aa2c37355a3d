from bespeak import App, Context

app = App("Acme Rooms", server_id="rooms.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("QUERY", "/caller", impact="informational", scopes=["rooms:read"])
def show_caller(context: Context) -> dict[str, str | None]:
    """Find out who the service thinks is calling.

    Outcome: The first digits of the Agent-ID are returned, and how it was proven.
    """
    caller = context.principal
    return {"agent": (caller.agent_id or "nobody")[:8], "proof": caller.verified}
