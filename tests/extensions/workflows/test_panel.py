"""The panel of workflows shows steps, and lets an operator intervene as `bespeak workflows` does."""

from __future__ import annotations

import pytest
from tests.console import Mounted, code_of
from tests.extensions.workflows.test_commands import AGENT, ROWS, SPEC
from tests.stateful import keeping

from bespeak.extensions.workflows.spec import encode
from bespeak.extensions.workflows.store import JournalSteps
from bespeak.state.store.commands.records import PutRecord

pytestmark = pytest.mark.anyio


async def test_a_workflow_is_drawn_with_its_steps_and_paused_resumed_and_cancelled() -> None:
    text = encode(SPEC).decode()
    async with keeping() as kept:
        await kept.store.do(PutRecord("chain-1", "workflow", AGENT, "running", text, delay=3600.0))
        await kept.store.do(PutRecord("chain-2", "workflow", AGENT, "running", text, delay=3600.0))
        await kept.store.do(JournalSteps("chain-2", 0, ROWS, 3600.0, "failed"))
        console = Mounted(bench=kept.bench)
        running, _ = await console.panel("workflows")
        assert [(row["key"], row["state"], row["actions"]) for row in running["rows"]] == [
            ("chain-1", "running", ["show", "pause", "cancel"]),
            ("chain-2", "failed", ["show", "retry"]),
        ]
        _, course, steps, _ = await console.panel("workflows", key="chain-2")
        assert [(node["label"], node["state"]) for node in course["nodes"]] == [
            ("CHAIN", ""),
            ("book: BOOK /rooms", "done"),
            ("PAY /account", "failed"),
        ]
        assert course["edges"] == [["0", "1"], ["1", "2"]]
        assert steps["rows"][1]["cells"][4] == "No money."
        for action, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelling")):
            blocks = (await console.act("workflows", action, "chain-1")).json()["blocks"]
            assert blocks[0]["rows"][0]["state"] in (state, "cancelled")
        assert code_of(await console.act("workflows", "pause", "chain-2")) == (409, "not-possible")
        assert code_of(await console.act("workflows", "retry", "chain-9")) == (404, "not-found")
        assert (await console.act("workflows", "retry", "chain-2")).status_code == 200
