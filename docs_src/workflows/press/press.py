from bespeak import App, Refusal

app = App("Acme Print", server_id="press.acme.example", operator="Acme Print", contact="ops@acme.example")
booked: list[str] = []


@app.endpoint("QUERY", "/papers", impact="informational")
def find_papers(sheets: int) -> dict[str, list[str]]:
    """Find papers of which there are enough sheets.

    Outcome: The papers in stock are returned.
    """
    return {"papers": ["matte", "glossy"]}


@app.endpoint(
    "BOOK", "/press", impact="reversible", inline=True, errors={"press_taken": "The press is taken on that day."}
)
def book_press(day: str) -> dict[str, str]:
    """Book the printing press for a day.

    Outcome: The press is booked, and its slot is returned.
    """
    if day in booked:
        raise Refusal("press_taken", f"The press is taken on {day}.")
    booked.append(day)
    return {"slot": day}


@app.endpoint("CANCEL", "/press", impact="reversible")
def cancel_press(slot: str) -> dict[str, bool]:
    """Give a booked day back.

    Outcome: The press is free on that day.
    """
    booked.remove(slot)
    return {"cancelled": True}


@app.endpoint("ORDER", "/paper", impact="reversible", errors={"paper_short": "There is not enough paper."})
def order_paper(paper: str, sheets: int) -> dict[str, str]:
    """Order paper from the warehouse.

    Outcome: The paper is on its way, and its order is returned.
    """
    if sheets > 5000:
        raise Refusal("paper_short", f"The warehouse has 5000 sheets of {paper}.")
    return {"order": f"{sheets} sheets, {paper}"}
