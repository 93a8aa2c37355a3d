from dataclasses import dataclass
from typing import Annotated, Literal

from bespeak import App, Body, Policies


@dataclass
class Card:
    kind: Literal["card"]
    number: str


@dataclass
class Transfer:
    kind: Literal["transfer"]
    iban: str


app = App(
    "Payments",
    server_id="payments.example",
    operator="Acme",
    contact="ops@acme.example",
    policies=Policies(scope_required_for_invocation=False),
)


@app.endpoint("EXECUTE", "/stays/{stay_id}/payment", impact="reversible")
def pay(stay_id: str, payment: Annotated[Card | Transfer, Body()]) -> Card | Transfer:
    """Pay for a stay.

    Outcome: The payment is recorded for the stay.
    """
    return payment


@app.endpoint("QUERY", "/fees", impact="informational")
def query_fees(payments: list[Card | Transfer]) -> dict[str, int]:
    """Add up the fees of payments.

    Outcome: The number of payments with a fee is returned.
    """
    return {"cards": sum(isinstance(one, Card) for one in payments)}
