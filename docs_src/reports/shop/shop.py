from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from bespeak import App, Chart, Report, Table

app = App("Acme Shop", server_id="shop.acme.example", operator="Acme", contact="ops@acme.example")


@dataclass
class Sale:
    day: date
    region: str
    amount: Decimal


SALES = [
    Sale(date(2026, 11, 2), "north", Decimal("120.50")),
    Sale(date(2026, 11, 3), "south", Decimal("80.00")),
    Sale(date(2026, 11, 9), "north", Decimal("42.00")),
]


@app.report("sales")
def list_sales(start: date, end: date, region: str | None = None) -> list[Sale]:
    """List the sales of a range of days."""
    return [sale for sale in SALES if start <= sale.day < end and region in (None, sale.region)]


@app.report("weekly-sales", scopes=["sales:read"])
def weekly_sales(start: date, end: date) -> Report:
    """Summarise the sales of a range of days."""
    sales = list_sales(start, end)
    regions: dict[str, float] = {}
    for sale in sales:
        regions[sale.region] = regions.get(sale.region, 0) + float(sale.amount)
    return Report(
        title="Weekly sales",
        figures={"Revenue": sum(sale.amount for sale in sales), "Sales": len(sales)},
        charts=[Chart("Revenue by region", regions)],
        tables=[Table(sales, "Sales")],
    )
