"""The health of a server is that of its parts, and a queue that nobody takes from is not healthy."""

from __future__ import annotations

import pytest
from tests.stateful import StatefulBench, keeping

from bespeak.runtime.messages.posting import TOPIC
from bespeak.runtime.monitors.health import examine, judge
from bespeak.state.store.commands.messages import PutOutbox
from bespeak.state.store.commands.records import PutRecord

pytestmark = pytest.mark.anyio


async def states(bench: StatefulBench) -> dict[str, tuple[str, str]]:
    found = await examine(bench.bench.server)
    return {one["name"]: (one["status"], one.get("message", "")) for one in found}


async def test_a_server_at_rest_is_healthy() -> None:
    async with keeping(methods=("CHECK",)) as bench:
        found = await examine(bench.bench.server)
        assert judge(found) == "ok"
        names = {"server", "store", "workflows", "queue of deliveries", "queue of what is due", "queue of submissions"}
        assert names <= {one["name"] for one in found}


async def test_what_waits_is_told_and_what_is_late_is_failing() -> None:
    async with keeping() as bench:  # without methods nothing is delivered
        await bench.store.do(
            PutOutbox(TOPIC, "x", "{}", -90.0),
            PutRecord("item-1", "submission", "ann", "queued", "{}"),
            PutRecord("x-1", "x", "ann", "open", "{}", delay=-30.0),
        )
        found = await states(bench)
        assert found["queue of deliveries"][0] == "failing"
        assert found["queue of deliveries"][1].startswith("1 wait, the oldest is 9")
        assert found["queue of what is due"][0] == "ok"
        assert found["queue of submissions"] == ("ok", "1 wait.")


async def test_an_examination_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.monitors.health.WITHIN", 0.0)
    async with keeping(methods=("CHECK",)) as bench:
        reply = await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})
        assert (reply.status, reply.error["code"]) == (408, "timeout")
