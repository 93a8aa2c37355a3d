from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from bespeak import App, DataQuery

app = App("Corner Shop", server_id="shop.example", operator="Corner Shop", contact="ops@shop.example")


@dataclass
class Order:
    order_id: int
    customer_id: str
    ordered: date
    total: float


ORDERS = [Order(1, "c-7", date(2026, 10, 1), 31.5), Order(2, "c-8", date(2026, 10, 2), 12.0)]


@app.data("order-history", description="Orders of customers", sensitivity="high", key=["order_id"])
def orders(query: DataQuery) -> Iterator[Order]:
    customer = query.value("customer_id")
    yield from (order for order in ORDERS if customer in (None, order.customer_id))
