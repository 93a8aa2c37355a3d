from dataclasses import dataclass
from datetime import date

from bespeak import App

app = App("Acme Shop")


@dataclass
class Order:
    customer: str
    item: str
    price: int


@app.template("offer")
def offer(order: Order) -> str:
    """Write an offer."""
    return f"Dear {order.customer}, we offer you: {order.item} for EUR {order.price}."


@dataclass
class Invoice:
    number: str
    total: float
    due: date | None = None


@app.extractor("invoice")
def invoice(text: str) -> Invoice:
    """Read an invoice of Acme."""
    parts = text.split()
    return Invoice(number=parts[1], total=float(parts[-1]))
