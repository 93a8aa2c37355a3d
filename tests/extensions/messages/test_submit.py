"""SUBMIT puts an item into a queue and returns its tracking id."""

from __future__ import annotations

import pytest
from tests.service import AGENT
from tests.stateful import keeping

from bespeak.extensions.messages import methods_send
from bespeak.extensions.messages.methods_send import MOST_PAYLOAD
from bespeak.state.store.commands.records import FindRecord

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("METHODS-5.3-2")
async def test_an_item_waits_in_its_queue() -> None:
    async with keeping(methods=("SUBMIT",)) as bench:
        reply = await bench.send("SUBMIT", "/", {"target": "expenses", "payload": {"sum": 3}, "priority": "high"})
        receipt = reply.json["result"]
        assert (reply.status, receipt["target"], receipt["status"]) == (200, "expenses", "queued")
        record = await bench.store.read(FindRecord(("submission",), receipt["tracking_id"]))
        assert (record.owner, record.content()) == (
            AGENT,
            {"target": "expenses", "payload": {"sum": 3}, "priority": 9},
        )


async def test_what_cannot_be_kept_is_refused() -> None:
    async with keeping(methods=("SUBMIT",)) as bench:
        large = await bench.send("SUBMIT", "/", {"target": "x", "payload": "x" * MOST_PAYLOAD})
        assert (large.status, large.error["code"]) == (413, "payload-too-large")
        called = await bench.send("SUBMIT", "/", {"target": "x", "payload": 1, "callback": "agtp://a.example"})
        assert (called.status, called.error["code"]) == (422, "callback-refused")


@pytest.mark.requirement("METHODS-5.3-3")
async def test_a_full_queue_takes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods_send, "MOST_QUEUED", 1)
    async with keeping(methods=("SUBMIT",)) as bench:
        assert (await bench.send("SUBMIT", "/", b"{")).status == 400
        assert (await bench.send("SUBMIT", "/", {"target": "x", "payload": 1})).status == 200
        full = await bench.send("SUBMIT", "/", {"target": "x", "payload": 2})
        assert (full.status, full.error["code"]) == (503, "queue-full")
