"""Purchases for tests: a seller, the headers of a buyer, and a payment provider that can misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.loopback import Asked, Told, json_server
from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak import App, Context, Price, Refusal, Sold
from bespeak.contract.participant import Participant
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.payments.settings import AccountSettings, PaymentSettings
from bespeak.protocol.exchange.principal import ANONYMOUS

METHODS = ("PURCHASE", "CANCEL", "CHECK", "QUOTE")
EUR = {"value": "10.00", "currency": "EUR"}


def ledger(opening: str = "100.00", **fields: Any) -> ServerDocument:
    account = AccountSettings(principal=AGENT, currency="EUR", opening=opening)
    return ServerDocument(extension_tables={"payments": PaymentSettings(accounts=(account,), **fields)})


def merchant_headers(bench: StatefulBench) -> dict[str, str]:
    """Return the headers of a buyer that has verified the manifest."""
    body = bench.bench.routes.publication.manifest_for(ANONYMOUS).body
    return {
        "merchant_id": "test.example",
        "merchant_manifest_fingerprint": hashlib.sha256(body).hexdigest(),
        "authority_scope": "payments:purchase",
    }


class Seat:
    """Sell a seat, and take note of what happens to it."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, str]] = []  # key and row of each act
        self.failures: list[Exception] = []  # what `fulfil` and `refund` raise, one after the other
        self.given_back: Price | None = None

    async def price(self, row: str = "12A", value: str = "10.00", currency: str = "EUR") -> Price:
        """Return the price of a seat.

        Errors:
            no_such_row: The aircraft does not have this row.
        """
        if row == "99Z":
            raise Refusal("no_such_row", "There is no row 99.", last="30F")
        return Price(value, currency)

    async def fulfil(
        self, context: Context, sold: Sold, row: str = "12A", value: str = "10.00", currency: str = "EUR"
    ) -> dict[str, str]:
        """Issue a ticket.

        Errors:
            taken: The seat is taken.
        """
        assert context.request.headers["idempotency-key"] == sold.key
        self.acts.append((sold.key, row))
        if self.failures:
            raise self.failures.pop(0)
        return {"ticket": f"T-{row}", "paid": sold.price.value, "for": sold.principal_id[:4]}

    async def refund(self, sold: Sold, row: str = "12A", value: str = "10.00", currency: str = "EUR") -> Price:
        """Take a ticket back.

        Errors:
            used: The ticket was used.
        """
        assert sold.item["ticket"] == f"T-{row}"
        self.acts.append((sold.key, row))
        if self.failures:
            raise self.failures.pop(0)
        return self.given_back or sold.asked


def sale_of(seller: type = Seat, name: str = "seat", **options: Any) -> tuple[Participant, Any]:
    """Return a sale, and its seller."""
    app = App("Shop", server_id="test.example", operator="Acme", contact="ops@test.example")
    app.sale(name, **options)(seller)
    [participant] = app.service().participants
    return participant, participant.functions["price"].function.__self__  # type: ignore[attr-defined] # it is bound


def selling(*sales: Participant, **options: Any) -> dict[str, Any]:
    """Return what makes a service a shop; for seats, if nothing else is sold."""
    return {"methods": METHODS, "participants": sales or (sale_of()[0],), **options}


async def buy(bench: StatefulBench, headers: dict[str, str | None] | None = None, **fields: Any) -> Any:
    """Send PURCHASE; a header that is None is left out."""
    body = {"item": "seat", "principal_id": AGENT, "amount": EUR, **fields}
    given = {**merchant_headers(bench), **(headers or {})}
    return await bench.send("PURCHASE", "/", body, **{name: text for name, text in given.items() if text is not None})


class PaymentServer:
    """A provider on loopback. `faults` has, by phase, what it does instead of answering well, once each."""

    def __init__(self) -> None:
        self.address = ""
        self.orders: dict[str, dict[str, Any]] = {}  # orders that were carried out, by key
        self.requests: list[tuple[str, str]] = []  # phase and key of every request
        self.faults: dict[str, list[str]] = {}
        self.arrived: dict[str, threading.Event] = {}  # set when a phase is asked for
        self.released = threading.Event()  # lets answers go that are held back

    def charged(self) -> int:
        return sum(order["phase"] == "settle" for order in self.orders.values())

    def answer(self, asked: Asked) -> Told:
        key, phase = asked.headers["idempotency-key"], asked.path.rpartition("/")[2]
        self.requests.append((phase, key))
        fault = (self.faults.get(phase) or [""]).pop(0)
        if fault == "500":
            return Told(b"out of order", 500)
        if fault == "declined" or asked.headers["authorization"] != "Bearer secret":
            text = {"key": key, "status": "declined", "code": "insufficient-funds", "message": "no money"}
            return Told(json.dumps(text).encode(), 402)
        self.orders.setdefault(key, {**asked.body, "given": f"ref-{len(self.orders)}"})
        self.arrived.setdefault(phase, threading.Event()).set()
        reference = self.orders[key]["given"]
        if fault == "silent":
            self.released.wait(20)
        if fault == "wrong":
            return Told(b'{"ok": true}')
        if fault == "large":
            return Told(b" " * 100_000)
        told = {"key": "pur-0/hold" if fault == "other" else key, "status": "done", "reference": reference}
        return Told(json.dumps(told).encode())


@contextmanager
def payment_server() -> Iterator[PaymentServer]:
    provider = PaymentServer()
    with json_server(provider.answer) as provider.address:
        try:
            yield provider
        finally:
            provider.released.set()
