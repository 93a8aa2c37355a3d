from bespeak import App, Context

app = App("Acme Desk", server_id="desk.acme.example", operator="Acme", contact="ops@acme.example")


@app.endpoint("QUERY", "/caller", impact="informational", scopes=["desk:read"])
def show_caller(context: Context) -> dict[str, str | None]:
    """Find out who the desk thinks is calling.

    Outcome: The first digits of the Agent-ID are returned, and how it was proven.
    """
    caller = context.principal
    return {"agent": (caller.agent_id or "nobody")[:8], "proof": caller.verified}
