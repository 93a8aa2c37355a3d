"""The panel of proposals shows the evaluations and the plan, and decides as `bespeak proposals` does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.console import Mounted, code_of
from tests.extensions.negotiation.negotiating import FIND, LODGINGS
from tests.extensions.negotiation.test_commands import AGENT, file
from tests.stateful import StatefulBench

from bespeak.contract.handler import Composition
from bespeak.extensions.negotiation.store import ReadProposal
from bespeak.runtime.additions import write_endpoint

pytestmark = pytest.mark.anyio
COMPOSED = replace(FIND, path="/lodgings", handler=Composition(recipe="synthesis-1"))
DOCUMENT = write_endpoint(
    COMPOSED, replace(LODGINGS, name="synthesis-1", pattern={}), explanation=("Calls FIND /rooms.",)
)


async def test_a_proposal_shows_its_evaluations_and_its_plan_and_is_decided(bench: StatefulBench) -> None:
    refusal = json.dumps({"refusal": {"reason": "ambiguous", "explanation": "Unclear."}})
    for filed in (file(1, "pending", DOCUMENT), file(2, "rejected", refusal)):
        await bench.store.do(filed)
    console = Mounted(bench=bench.bench)
    waiting, in_use, rejected, _ = await console.panel("proposals")
    assert [row["actions"] for row in waiting["rows"]] == [["show", "approve", "reject"]]
    assert (in_use["rows"], rejected["rows"][0]["key"]) == ([], "prop-2")
    _, evaluations, plan, _, steps, contract = await console.panel("proposals", key="prop-1")
    assert [row["state"] for row in evaluations["rows"]] == ["passed"] * 6 + ["waiting"]
    assert [node["label"] for node in plan["nodes"]] == ["FIND /lodgings", "FIND /rooms"]
    assert plan["edges"] == [["0", "1", "city"]]
    assert steps["text"] == "Calls FIND /rooms."
    assert '"path": "/lodgings"' in contract["text"]
    _, evaluations, *_ = await console.panel("proposals", key="prop-2")
    assert [row["state"] for row in evaluations["rows"]][5:] == ["refused", "not reached"]
    assert code_of(await console.act("proposals", "approve", "prop-1", by=AGENT)) == (403, "own-proposal")
    assert (await console.act("proposals", "approve", "prop-1", reason="fine")).status_code == 200
    row = await bench.store.read(ReadProposal("prop-1"))
    assert (row.state, row.decided_by, row.reason) == ("approved", "operator:ann", "fine")
    assert code_of(await console.act("proposals", "reject", "prop-1")) == (409, "decided")
    assert (await console.act("proposals", "revoke", "prop-1")).status_code == 200
    assert (await bench.store.read(ReadProposal("prop-1"))).state == "revoked"
