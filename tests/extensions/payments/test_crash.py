"""A server that is killed in any phase of a purchase: it is continued, delivered under one key and paid once."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.payments import EUR, payment_server
from tests.process import Served, serving
from tests.service import AGENT

import bespeak
from bespeak import UnreachableError
from bespeak.extensions.payments.store import CheckLedger, ListAccounts
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.process

CONFIGURATION = f"""
[server]
app = "shop:app"
[policies]
scope_required_for_invocation = false
[payments]
timeout = 1
{{provider}}
[[payments.accounts]]
principal = "{AGENT}"
currency = "EUR"
opening = "100.00"
[idempotency]
lease = 1
"""
SHOP = """
import json
from urllib.request import Request, urlopen

from bespeak import App, Price, Sold

app = App("Shop", server_id="shop.example", operator="Acme", contact="ops@shop.example")


def tell_airline(act: str, sold: Sold) -> None:
    headers = {"Idempotency-Key": sold.key, "Authorization": "Bearer secret"}
    with urlopen(Request(f"{address}/{act}", json.dumps({"phase": act}).encode(), headers)) as answer:
        answer.read()


@app.sale("seat")
class Seat:
    def price(self) -> Price:
        return Price("10.00", "EUR")

    def fulfil(self, sold: Sold) -> dict[str, str]:
        tell_airline("fulfil", sold)
        return {"ticket": "T-1"}

    def refund(self, sold: Sold) -> Price:
        tell_airline("return", sold)
        return sold.asked
"""


async def request(uri: str, method: str, body: dict[str, Any]) -> Any:
    """Send a request with a key; None if the server dies before it answers."""
    async with bespeak.connect(uri, retry=None) as service:
        manifest = await service.request("DISCOVER", "/", {"target": "manifest"})
        headers = {
            "Agent-ID": AGENT,
            "Authority-Scope": "payments:purchase",
            "Idempotency-Key": f"{method}-1",
            "Merchant-ID": "shop.example",
            "Merchant-Manifest-Fingerprint": hashlib.sha256(manifest.body).hexdigest(),
        }
        try:
            return await service.request(method, "/", body, headers=headers)
        except UnreachableError:
            return None


async def buy(uri: str) -> Any:
    return await request(uri, "PURCHASE", {"item": "seat", "principal_id": AGENT, "amount": EUR})


async def buy_and_cancel(uri: str) -> Any:
    bought = await buy(uri)
    body = {"target_id": bought.output["purchase_id"], "refund_policy": "full"}
    return await request(uri, "CANCEL", body)


def kill(served: Served, arrived: threading.Event) -> None:
    assert arrived.wait(20)
    served.process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize(
    ("is_outside", "phase", "state"),
    [
        *((True, phase, "settled") for phase in ("hold", "fulfil", "settle")),
        *((True, phase, "cancelled") for phase in ("return", "refund")),
        (False, "fulfil", "settled"),
        (False, "return", "cancelled"),
    ],
)
@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_a_purchase_is_continued_after_kill_9(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    *,
    is_outside: bool,
    phase: str,
    state: str,
    place: str,
) -> None:
    monkeypatch.setenv("BESPEAK_PAYMENTS_TOKEN", "secret")
    at = str(tmp_path / "bespeak.db") if place == "sqlite" else str(request.getfixturevalue("postgres_store"))
    act: Callable[[str], Awaitable[Any]] = buy if state == "settled" else buy_and_cancel
    with payment_server() as provider:
        outside = f'provider = "{provider.address}"' if is_outside else ""
        (tmp_path / "bespeak.toml").write_text(CONFIGURATION.format(provider=outside))
        (tmp_path / "shop.py").write_text(f'address = "{provider.address}"\n{SHOP}')
        # The provider or the airline has done its part, and the server dies before it learns that.
        provider.faults[phase] = ["silent"]
        arrived = provider.arrived[phase] = threading.Event()
        with serving(tmp_path, "--store", at, cwd=tmp_path) as served:
            killer = threading.Thread(target=kill, args=(served, arrived))
            killer.start()
            assert asyncio.run(act(served.uri)) is None  # type: ignore[arg-type] # it is a coroutine
            killer.join()
            assert served.process.wait(20) == -signal.SIGKILL
        provider.released.set()
        with serving(tmp_path, "--store", at, cwd=tmp_path) as served:
            # Nobody asks again: the server continues by itself.
            purchase_id, balances = asyncio.run(ended(at, state))
            reply = asyncio.run(buy(served.uri))
        assert (reply.status, reply.output["purchase_id"]) == (200, purchase_id)
        phases = ["fulfil", *(["return"] if state == "cancelled" else [])]
        if is_outside:
            phases += ["hold", "settle", *(["refund"] if state == "cancelled" else [])]
            assert provider.charged() == 1
        else:
            paid = 1000 if state == "settled" else 0
            assert balances == {"opening": -10_000, f"principal/{AGENT}": 10_000 - paid, "held": 0, "sales": paid}
        assert set(provider.orders) == {f"{purchase_id}/{one}" for one in phases}
        assert provider.requests.count((phase, f"{purchase_id}/{phase}")) == 2


async def ended(place: str, state: str) -> tuple[str, dict[str, int]]:
    """Wait until the only purchase is in a state; return its id and the balances of the ledger."""
    store = open_store(place)
    await store.start()
    try:
        async with asyncio.timeout(30):
            while True:
                [record] = await store.read(ListRecords("purchase"))
                if record.state == state:
                    break
                await asyncio.sleep(0.05)
        assert await store.read(CheckLedger()) == []
        return record.record_id, {one.account: one.balance for one in await store.read(ListAccounts())}
    finally:
        await store.close()
