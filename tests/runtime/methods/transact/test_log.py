"""LOG keeps an event with its author."""

from __future__ import annotations

import logging

import pytest
from tests.service import AGENT
from tests.stateful import keeping

from bespeak.runtime.entities.methods import MOST_EVENT_DATA
from bespeak.state.store.commands.records import FindRecord

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("METHODS-5.9-3", "METHODS-5.9-4")
async def test_an_event_is_kept_and_its_receipt_names_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with keeping(methods=("LOG",)) as bench:
        sent = {"event_type": "wire", "data": {"secret": 7}, "severity": "warning", "correlation_id": "t-1"}
        reply = await bench.send("LOG", "/", sent)
        receipt = reply.json["result"]
        assert (reply.status, receipt["event_type"], receipt["severity"]) == (200, "wire", "warning")
        record = await bench.store.read(FindRecord(("log",), receipt["record_id"]))
        assert (record.owner, record.content()) == (AGENT, sent)
        assert f"{AGENT} reported wire: {record.record_id}" in caplog.text
        assert "secret" not in caplog.text


@pytest.mark.requirement("METHODS-5.9-5")
async def test_a_record_is_bounded() -> None:
    async with keeping(methods=("LOG",)) as bench:
        reply = await bench.send("LOG", "/", {"event_type": "wire", "data": "x" * MOST_EVENT_DATA})
        assert (reply.status, reply.json["error"]["code"]) == (400, "invalid-data")


async def test_an_anonymous_caller_cannot_log() -> None:
    async with keeping(methods=("LOG",)) as bench:
        assert (await bench.send("LOG", "/", {"event_type": "x", "data": 1}, agent=None)).status == 262
