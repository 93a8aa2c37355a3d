"""The operator's address: health and metrics, with one worker and with two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process import HOTEL, serving

import bespeak
from bespeak.app.server.operations import Operations
from bespeak.errors import StoreUnavailableError

SCOPES = ["rooms:read"]


@pytest.mark.process
@pytest.mark.parametrize("workers", ["1", "2"])
def test_health_and_metrics_are_served_apart_from_the_service(workers: str, tmp_path: Path) -> None:
    options = ["--operations", "127.0.0.1:0", "--workers", workers, "--store", str(tmp_path / "s.db")]
    with serving(HOTEL, *options, env={"HOTEL_LEDGER": str(tmp_path / "ledger")}) as served:
        url = served.operations
        for _ in range(8):  # fresh connections, so that two workers share them
            with bespeak.connect_sync(served.uri, scopes=SCOPES) as hotel:
                assert hotel.request("QUERY", "/rooms", {"beds": 2}).ok
        health = httpx.get(f"{url}/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        metrics = httpx.get(f"{url}/metrics")
        assert 'path="/rooms",status="200"} 8.0' in metrics.text
        assert httpx.post(f"{url}/healthz").status_code == 405
        assert "/healthz and /metrics" in httpx.get(f"{url}/").text
        assert httpx.get(f"{url}/metrics", headers={"Host": "evil.example"}).status_code == 421
        assert httpx.get(f"{url}/metrics", headers={"Origin": "http://evil.example"}).status_code == 403


class BrokenStore:
    async def read(self, command: object) -> object:
        raise StoreUnavailableError("the disk is gone")


@pytest.mark.anyio
async def test_a_server_without_its_store_is_not_healthy() -> None:
    class Broken:
        class server:  # noqa: N801 - stands for an attribute
            store = BrokenStore()

    app: Any = Operations(Broken, None, loopback=True)  # type: ignore[arg-type] # only its store is used
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        reply = await client.get("/healthz")
    assert reply.status_code == 503
    assert reply.json() == {"status": "unavailable", "reason": "the store failed: the disk is gone"}
