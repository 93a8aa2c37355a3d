"""QUERY /proposals: the state of a proposal until it is decided."""

from __future__ import annotations

import pytest
from tests.extensions.negotiation.definitions import definition
from tests.extensions.negotiation.negotiating import OTHER, SESSION, lodgings, negotiating, refunds
from tests.stateful import StatefulBench

from bespeak.state.store.commands.proposals import DecideProposal, ReleaseSynthesis

pytestmark = pytest.mark.anyio

SCOPE = {"authority_scope": "stays:cancel"}


async def decide(bench: StatefulBench, proposal_id: str, state: str, reason: str | None = None) -> None:
    await bench.store.do(DecideProposal(proposal_id, state, "operator:kim", reason))


@pytest.mark.requirement("API-11-5", "CORE-4.6-4", "API-13.1-8")
async def test_agent_asks_until_an_operator_has_approved() -> None:
    async with negotiating(approval="all") as bench:
        pending = await bench.send("PROPOSE", "/", lodgings(), session_id=SESSION)
        assert pending.status == 261
        assert {"proposal_id", "negotiation_id", "estimated_duration", "max_evaluation_duration"} <= pending.json.keys()
        proposal_id, path = pending.json["proposal_id"], pending.json["polling_path"]
        assert (await bench.send("PROPOSE", "/", lodgings(), session_id=SESSION)).json["proposal_id"] == proposal_id
        assert (await bench.send("FIND", "/lodgings", {"town": "x"}, session_id=SESSION)).status == 404
        assert (await bench.send("QUERY", path)).status == 261
        await decide(bench, proposal_id, "approved")
        approved = await bench.send("QUERY", "/proposals", {"proposal_id": proposal_id})
        assert (approved.status, approved.json["path"]) == (263, "/lodgings")
        assert (await bench.send("FIND", "/lodgings", {"town": "x"}, session_id=SESSION)).status == 200


async def test_rejection_by_an_operator_is_463_with_the_reason() -> None:
    async with negotiating(approval="all") as bench:
        pending = await bench.send("PROPOSE", "/", lodgings())
        await decide(bench, pending.json["proposal_id"], "rejected", "not in season")
        refused = await bench.send("QUERY", pending.json["polling_path"])
        assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
        assert "not in season" in refused.json["explanation"]


@pytest.mark.parametrize(
    ("approval", "found", "refunded", "kept"),
    [
        ("none", 263, 263, 263),
        ("irreversible", 263, 261, 263),
        ("changing", 263, 261, 263),
        ("persistent", 263, 263, 261),
        ("all", 261, 261, 261),
    ],
)
async def test_setting_says_what_waits_for_an_operator(approval: str, found: int, refunded: int, kept: int) -> None:
    async with negotiating(approval=approval, persistent=True) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings())).status == found
        assert (await bench.send("PROPOSE", "/", refunds(), **SCOPE)).status == refunded
        persistent = {"endpoint": lodgings(), "persistent": True}
        assert (await bench.send("PROPOSE", "/", persistent, agent=OTHER)).status == kept


async def test_rejected_proposal_is_answered_again() -> None:
    async with negotiating() as bench:
        refused = await bench.send("PROPOSE", "/", definition())
        again = await bench.send("QUERY", f"/proposals/{refused.json['proposal_id']}")
        assert (again.status, again.json["reason"]) == (463, refused.json["reason"])
        assert again.json["explanation"] == refused.json["explanation"]


async def test_proposal_of_another_agent_is_as_if_it_did_not_exist() -> None:
    async with negotiating() as bench:
        proposal_id = (await bench.send("PROPOSE", "/", lodgings())).json["proposal_id"]
        other = await bench.send("QUERY", f"/proposals/{proposal_id}", agent=OTHER)
        unknown = await bench.send("QUERY", "/proposals/prop-0", agent=OTHER)
        assert other.status == 404
        assert other.json == unknown.json
        assert (await bench.send("QUERY", f"/proposals/{proposal_id}", agent=None)).status == 404


async def test_proposal_that_has_ended_is_410() -> None:
    async with negotiating() as bench:
        approved = await bench.send("PROPOSE", "/", lodgings())
        await bench.store.do(ReleaseSynthesis(approved.json["proposal_id"], "a" * 64))
        ended = await bench.send("QUERY", f"/proposals/{approved.json['proposal_id']}")
        assert (ended.status, ended.error["state"]) == (410, "released")
