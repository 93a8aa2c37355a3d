"""A server that is killed between hold and settle: the purchase is continued, paid once and not lost."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.payments import EUR, payment_server
from tests.process import Served, serving
from tests.service import AGENT

import bespeak
from bespeak import UnreachableError
from bespeak.state.store.commands.records import FindRecord
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.process

CONFIGURATION = """
[server]
server_id = "shop.example"
operator = "Acme"
contact = "ops@shop.example"
[policies]
scope_required_for_invocation = false
[methods]
enable = ["PURCHASE"]
[payments]
provider = "{address}"
timeout = 1
[idempotency]
lease = 1
"""


async def buy(uri: str) -> Any:
    """Purchase a seat with a key; None if the server dies before it answers."""
    async with bespeak.connect(uri, retry=None) as service:
        manifest = await service.request("DISCOVER", "/", {"target": "manifest"})
        headers = {
            "Agent-ID": AGENT,
            "Authority-Scope": "payments:purchase",
            "Idempotency-Key": "seat-1",
            "Merchant-ID": "shop.example",
            "Merchant-Manifest-Fingerprint": hashlib.sha256(manifest.body).hexdigest(),
        }
        body = {"item": "seat 12A", "principal_id": AGENT, "amount": EUR}
        try:
            return await service.request("PURCHASE", "/", body, headers=headers)
        except UnreachableError:
            return None


def kill(served: Served, arrived: threading.Event) -> None:
    assert arrived.wait(20)
    served.process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("phase", ["hold", "settle"])
def test_a_purchase_is_continued_after_kill_9(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    monkeypatch.setenv("BESPEAK_PAYMENTS_TOKEN", "secret")
    with payment_server() as provider:
        (tmp_path / "bespeak.toml").write_text(CONFIGURATION.format(address=provider.address))
        # The provider has done its part, and the server dies before it learns that.
        provider.faults[phase] = ["silent"]
        arrived = provider.arrived[phase] = threading.Event()
        with serving(tmp_path, "--store", str(tmp_path / "bespeak.db"), cwd=tmp_path) as served:
            killer = threading.Thread(target=kill, args=(served, arrived))
            killer.start()
            assert asyncio.run(buy(served.uri)) is None
            killer.join()
            assert served.process.wait(20) == -signal.SIGKILL
        provider.released.set()
        [(_, key)] = [one for one in provider.requests if one[0] == "hold"]
        purchase_id = key.partition("/")[0]
        with serving(tmp_path, "--store", str(tmp_path / "bespeak.db"), cwd=tmp_path) as served:
            # Nobody asks again: the server continues by itself.
            assert asyncio.run(settled(tmp_path, purchase_id)) == "settled"
            reply = asyncio.run(buy(served.uri))
        assert (reply.status, reply.output["purchase_id"]) == (200, purchase_id)
        assert provider.charged() == 1
        assert set(provider.orders) == {f"{purchase_id}/hold", f"{purchase_id}/settle"}


async def settled(folder: Path, purchase_id: str) -> str:
    """Wait until the purchase is no longer pending and return its state."""
    store = open_store(str(folder / "bespeak.db"))
    await store.start()
    try:
        async with asyncio.timeout(30):
            while True:
                record = await store.read(FindRecord(("purchase",), purchase_id))
                if record.state != "pending":
                    return str(record.state)
                await asyncio.sleep(0.05)
    finally:
        await store.close()
