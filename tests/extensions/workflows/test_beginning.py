"""A request that is repeated while its workflow runs is told to come back, and finds the same workflow then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.service import make_endpoint
from tests.stateful import keeping

pytestmark = pytest.mark.anyio


async def test_a_workflow_that_takes_long_is_answered_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.workflows.start.ANSWERED_WITHIN", 0.05)
    release = asyncio.Event()
    calls = 0

    async def wait(_: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        await release.wait()
        return {}

    async with keeping(make_endpoint("AWAIT", "/porter", wait, impact="reversible"), methods=("CHAIN",)) as bench:
        body = {"steps": [{"method": "AWAIT", "path": "/porter"}]}
        plain = await bench.send("CHAIN", "/", body)
        assert (plain.status, plain.json["result"]["status"]) == (202, "running")
        keyed = await bench.send("CHAIN", "/", body, idempotency_key="k")
        assert (keyed.status, keyed.error["code"], keyed.header("Retry-After")) == (503, "workflow-running", "5")
        release.set()
        monkeypatch.undo()
        ended = await bench.send("CHAIN", "/", body, idempotency_key="k")
        assert ended.json["result"]["chain_id"] == keyed.error["workflow_id"]
        assert (ended.json["result"]["status"], calls) == ("completed", 2)
