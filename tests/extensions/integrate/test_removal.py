"""Removal of imported resources by CANCEL (Tier 2 5.5)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.extensions.acquire.test_methods import code, good
from tests.extensions.integrate.test_jobs import look
from tests.extensions.messages.conftest import place
from tests.messaging import BOB
from tests.stateful import audited_backend, keeping

from bespeak.extensions.acquire.store import FindVersion
from bespeak.extensions.integrate import removal
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place"]
SERVICE: dict[str, Any] = {"methods": ("IMPORT", "FETCH", "SEARCH", "SCAN", "CHECK", "CANCEL")}


async def test_its_owner_removes_a_resource_with_its_versions_and_its_words(place: str) -> None:
    store = open_store(place, role="sole")
    try:
        async with keeping(**SERVICE, store=store) as bench:
            given: dict[str, Any] = {"target": "people", "key": "id"}
            for name in ("Ann", "Anna"):
                await good(bench, "IMPORT", source=[{"id": "1", "name": name}, {"id": "2", "name": "Bob"}], **given)
            for target in ("res-1", "people/1", "resources:people", "people"):
                assert await code(bench, "CANCEL", target_id=target, agent=BOB) == (404, "target-not-found")
            assert await code(bench, "CANCEL", target_id="people") == (404, "target-not-found")
            refund = {"target_id": "res-1", "refund_policy": "full"}
            assert await code(bench, "CANCEL", **refund) == (422, "refund-impossible")
            told = await good(bench, "CANCEL", target_id="res-1")
            assert (told["kind"], told["status"], told["details"]) == ("resource", "cancelled", {"removed": 1})
            assert await code(bench, "FETCH", resource_id="people/1") == (404, "resource-not-found")
            assert await store.read(FindVersion(1, 1)) is None
            assert (await good(bench, "SEARCH", query="anna", scope="people"))["total"] == 0
            assert await code(bench, "CANCEL", target_id="res-1") == (404, "target-not-found")
            assert (await good(bench, "CANCEL", target_id="people/2"))["status"] == "cancelled"
            assert await code(bench, "SCAN", collection="people") == (404, "collection-not-found")
            await good(bench, "IMPORT", source=[{"id": "1"}], **given)
            assert (await good(bench, "FETCH", resource_id="people/1"))["version"] == 1
    finally:
        await store.close()


async def test_a_collection_is_removed_at_once_or_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_AT_ONCE", 10)
    async with keeping(**SERVICE) as bench:
        for count in (10, 25):
            for agent in ("people", "others"):
                await good(bench, "IMPORT", source=[{"n": number} for number in range(count)], target=agent)
            await good(bench, "IMPORT", source=[{"n": 1}], target="people", agent=BOB)
            reply = await bench.send("CANCEL", "/", {"target_id": "resources:people"})
            told = reply.json["result"]
            if count == 10:
                assert (reply.status, told["status"], told["details"]) == (200, "cancelled", {"removed": 10})
            else:
                assert (reply.status, told["status"]) == (202, "cancelling")
                found = await look(bench, told["job_id"])
                progress = {"done": 25, "total": 25, "unit": "rows"}
                assert (found["details"]["progress"], found["details"]["result"]["details"]) == (
                    progress,
                    {"removed": 25},
                )
            assert await code(bench, "SCAN", collection="people") == (404, "collection-not-found")
        assert (await good(bench, "SCAN", collection="others"))["count"] == 35
        assert (await good(bench, "SCAN", collection="people", agent=BOB))["count"] == 2
