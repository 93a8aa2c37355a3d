from bespeak import App

app = App.from_agis("menu.agis")


@app.handler("SEAT", "/party/{number}")
def seat_party(number: int, table: int) -> dict[str, str]:
    return {"name": "Ann"}
