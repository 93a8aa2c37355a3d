"""Purchases for tests: a seller, the headers of a buyer, and a payment provider that can misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.orders: dict[str, dict[str, Any]] = {}  # orders that were carried out, by key
        self.requests: list[tuple[str, str]] = []  # phase and key of every request
        self.faults: dict[str, list[str]] = {}
        self.arrived: dict[str, threading.Event] = {}  # set when a phase is asked for
        self.released = threading.Event()  # lets answers go that are held back

    def charged(self) -> int:
        return sum(order["phase"] == "settle" for order in self.orders.values())


@contextmanager
def payment_server() -> Iterator[PaymentServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            key, phase = self.headers["idempotency-key"], self.path.rpartition("/")[2]
            authorized = self.headers["authorization"] == "Bearer secret"
            provider.requests.append((phase, key))
            fault = (provider.faults.get(phase) or [""]).pop(0)
            if fault == "500":
                return self._answer(500, b"out of order")
            if fault == "declined" or not authorized:
                text = {"key": key, "status": "declined", "code": "insufficient-funds", "message": "no money"}
                return self._answer(402, json.dumps(text).encode())
            provider.orders.setdefault(key, {**body, "given": f"ref-{len(provider.orders)}"})
            provider.arrived.setdefault(phase, threading.Event()).set()
            reference = provider.orders[key]["given"]
            if fault == "silent":
                provider.released.wait(20)
            if fault == "wrong":
                return self._answer(200, b'{"ok": true}')
            if fault == "large":
                return self._answer(200, b" " * 100_000)
            if fault == "other":
                key = "pur-0/hold"
            return self._answer(200, json.dumps({"key": key, "status": "done", "reference": reference}).encode())

        def _answer(self, code: int, body: bytes) -> None:
            with suppress(OSError):  # whoever asked may be gone
                self.send_response(code)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        provider = PaymentServer(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            provider.released.set()
            server.shutdown()
            thread.join()
