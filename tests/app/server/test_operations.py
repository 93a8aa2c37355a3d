"""The operator's address: health and metrics, with one worker and with two."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process import HOTEL, serving

import bespeak
from bespeak.app.server import http_face
from bespeak.app.server.http_face import Operations, extra_needed
from bespeak.errors import ConfigError, StoreUnavailableError

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


class SilentStore:
    """Never answers, and counts those who ask."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self, command: object) -> object:
        self.asked += 1
        return await asyncio.Event().wait()


@pytest.mark.anyio
async def test_a_store_that_does_not_answer_is_reported_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_face.WITHIN < 1
    monkeypatch.setattr(http_face, "WITHIN", 0.01)
    silent = SilentStore()

    class Cut:
        class server:  # noqa: N801 - stands for an attribute
            store = silent

    app: Any = Operations(Cut, None, loopback=True)  # type: ignore[arg-type] # only its store is used
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for _ in range(3):
            reply = await client.get("/healthz")
            assert reply.status_code == 503
            assert reply.json()["reason"] == "the store did not answer within 0.01 s"
    assert silent.asked == 1  # a store that is busy is not asked more and more
    assert app._looking is not None
    app._looking.cancel()


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


def test_a_missing_package_is_named_with_the_extra() -> None:
    advice = r"A2A needs the official SDK: pip install 'bespeak\[a2a\]'"
    with pytest.raises(ConfigError, match=advice), extra_needed("A2A", "a2a", "a2a", "google"):
        raise ModuleNotFoundError("No module named 'google'", name="google.protobuf")


def test_any_other_missing_package_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError), extra_needed("A2A", "a2a", "a2a"):
        raise ModuleNotFoundError("No module named 'other'", name="other")
