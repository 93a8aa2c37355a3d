from bespeak import App, Context, Refusal

app = App("Acme Billing", server_id="billing.acme.example", operator="Acme", contact="ops@acme.example")
orders = {"77": 120, "78": 40}
sent: dict[str, str] = {}


@app.queue("invoices", concurrency=4, retries=5)
async def send_invoice(order: str, context: Context) -> dict[str, str]:
    """Send the invoice of an order.

    Errors:
        no_such_order: There is no such order.
    """
    if order not in orders:
        raise Refusal("no_such_order", f"There is no order {order}.")
    key = context.request.headers["idempotency-key"]  # the same in every attempt: pass it on to whoever sends
    return {"invoice": sent.setdefault(key, f"{order}: {orders[order]} EUR")}


@app.endpoint("SHIP", "/orders", impact="irreversible")
def ship(order: str, context: Context) -> dict[str, str]:
    """Ship an order and have its invoice sent.

    Outcome: The order is on its way, and its invoice waits in the queue.
    """
    context.submit("invoices", {"order": order})
    return {"shipped": order}
