"""A server that is killed before the time of an alert and of a publication: the next one delivers both, once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.messaging import ANN, BOB, CAT, soon
from tests.process import serving

import bespeak

pytestmark = pytest.mark.process

CONFIGURATION = """
[server]
server_id = "desk.example"
operator = "Acme"
contact = "ops@desk.example"
[policies]
[methods]
enable = ["REGISTER", "PUBLISH", "ALERT"]
"""


async def schedule(uri: str) -> None:
    async with bespeak.connect(uri, agent_id=CAT) as service:
        await service.call("REGISTER", "/", entity_type="subscription", data={"channel": "news"})
    async with bespeak.connect(uri, agent_id=ANN) as service:
        at = soon(1.0)
        await service.call("PUBLISH", "/", channel="news", content="rain", schedule_at=at)
        alert = {"recipient": BOB, "message": "flood", "severity": "high"}
        await service.call("ALERT", "/", **alert, acknowledge_by=at, escalation_path=[CAT])


async def received(uri: str) -> list[Any]:
    async with bespeak.connect(uri, agent_id=CAT) as service, asyncio.timeout(20):
        while len(found := (await service.call("QUERY", "/messages"))["messages"]) < 2:
            await asyncio.sleep(0.02)
        return sorted(message["kind"] for message in found)


def test_what_was_scheduled_arrives_after_kill_9(tmp_path: Path) -> None:
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION)
    store = str(tmp_path / "state.db")
    with serving(tmp_path, "--store", store) as served:
        asyncio.run(schedule(served.uri))
        served.stop(signal.SIGKILL)
    with serving(tmp_path, "--store", store) as served:
        assert asyncio.run(received(served.uri)) == ["alert", "publication"]
