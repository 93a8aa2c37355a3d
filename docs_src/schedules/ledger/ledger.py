from datetime import datetime, timedelta

from bespeak import App, Run

app = App("Acme Ledger", server_id="ledger.acme.example", operator="Acme", contact="ops@acme.example")
closed: list[str] = []


@app.endpoint("CLOSE", "/books", impact="reversible", scopes=["books:close"])
def close_books(day: str) -> dict[str, str]:
    """Close the books of a day.

    Outcome: The books of the day take no more entries.
    """
    closed.append(day)
    return {"closed": day}


@app.workflow("close-day", every="1 day at 02:00 Europe/Berlin", missed="all", scopes=["books:close"])
async def close_day(run: Run, planned: datetime) -> dict[str, str]:
    """Close the books of the day that has ended."""
    await run.sleep(1)  # late entries
    day = planned - timedelta(hours=12)
    return await run.call("CLOSE", "/books", day=f"{day:%Y-%m-%d}")
