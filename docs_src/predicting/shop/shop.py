from typing import Literal

from bespeak import App, Prediction

app = App("Acme Shop", server_id="shop.acme.example", operator="Acme", contact="ops@acme.example")


@app.model("churn")
def churn(orders: int, days_since_last: int, plan: Literal["free", "paid"] = "free") -> Prediction:
    """Predict whether a customer leaves."""
    factors = {"orders": -0.05 * orders, "days_since_last": 0.005 * days_since_last}
    if plan == "paid":
        factors["plan"] = -0.2
    leaves = min(max(0.3 + sum(factors.values()), 0.0), 1.0)
    value = "leaves" if leaves >= 0.5 else "stays"
    return Prediction(value, confidence=max(leaves, 1 - leaves), factors=factors)


@app.model("delivery-days", scopes=["logistics:read"], baseline={"weight": 1.0, "express": False})
def delivery_days(weight: float, express: bool = False) -> float:
    """Estimate how many days a delivery takes."""
    return (1.0 if express else 3.0) + weight / 10
