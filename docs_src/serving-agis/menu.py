from datetime import date

from bespeak import App, Refusal

app = App.from_agis("menu.agis")

NAMES: dict[int, str] = {}


@app.handler("RESERVE", "/table", inline=True)  # in the event loop: one call at a time
def reserve_table(name: str, guests: int, evening: date) -> dict[str, int]:
    if len(NAMES) == 4:
        raise Refusal("fully_booked", f"There is no table on {evening}.")
    number = len(NAMES) + 1
    NAMES[number] = name
    return {"number": number}


@app.handler("SEAT", "/party/{number}")
async def seat_party(number: int) -> dict[str, str]:
    if number not in NAMES:
        raise Refusal("reservation_unknown", f"There is no reservation {number}.")
    return {"name": NAMES[number]}
