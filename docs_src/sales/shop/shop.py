from bespeak import App, Price, Refusal, Sold

app = App("Acme Shop", server_id="shop.acme.example", operator="Acme Shop", contact="ops@acme.example")
stock = {"lamp": ("30.00", 2), "sofa": ("95.00", 1), "piano": ("900.00", 1), "chair": ("20.00", 0)}
sold_by_key: dict[str, str] = {}


@app.sale("furniture")
class Furniture:
    """Sell a piece of furniture."""

    def price(self, name: str) -> Price:
        """Return the price of a piece.

        Errors:
            unknown_piece: The shop does not have such a piece.
        """
        if name not in stock:
            raise Refusal("unknown_piece", f"There is no {name}.", pieces=list(stock))
        return Price(stock[name][0], "EUR")

    def fulfil(self, name: str, sold: Sold) -> dict[str, str]:
        """Send the piece.

        Errors:
            sold_out: The last one is sold.
        """
        value, left = stock[name]
        if left == 0:
            raise Refusal("sold_out", f"The last {name} is sold.")
        if sold.key not in sold_by_key:  # it may be called again with the same key after a crash
            stock[name] = (value, left - 1)
        return {"parcel": sold_by_key.setdefault(sold.key, f"P-{len(sold_by_key) + 1}")}

    def refund(self, name: str, sold: Sold) -> Price:
        """Take a piece back."""
        value, left = stock[name]
        stock[name] = (value, left + 1)
        return sold.asked
