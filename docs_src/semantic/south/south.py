from dataclasses import dataclass

from bespeak import App

app = App("South", server_id="south.example", operator="South", contact="ops@south.example")


@dataclass
class Price:
    price: float


@app.endpoint("CALCULATE", "/tariff", impact="informational", concepts=["https://south.example/words#parcel-price"])
def calculate_price(pounds: float, pickup_date: str) -> Price:
    """Calculate the price of a parcel.

    Outcome: The price in euros is returned.
    """
    return Price(round(pounds * 2, 2))
