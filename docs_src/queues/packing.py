from dataclasses import dataclass

from bespeak import App

app = App("Acme Packing", server_id="packing.acme.example", operator="Acme", contact="ops@acme.example")


@dataclass
class Order:
    sku: str
    count: int = 1


app.queue("orders", model=Order, lease=300, retries=2, description="Orders that wait for a packer")
