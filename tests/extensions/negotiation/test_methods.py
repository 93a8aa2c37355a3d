"""Answers to proposals, and QUERY /proposals until one is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.extensions.negotiation.definitions import definition
from tests.extensions.negotiation.negotiating import FIND, LODGINGS, OTHER, SESSION, lodgings, negotiating, refunds
from tests.service import AGENT, build
from tests.stateful import StatefulBench

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.handler import Composition
from bespeak.extensions.negotiation.evaluation import Rejection
from bespeak.extensions.negotiation.methods import Filing, answer_proposal, escalate, refuse_proposal, write_contract
from bespeak.extensions.negotiation.plan import PlannedContract
from bespeak.extensions.negotiation.proposal import Proposal, read_proposal
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.store import DecideProposal, FileProposal, ProposalRow, ReleaseSynthesis
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import write_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import Call, RoutedCall
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Conflict

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


@rows(
    "approval, found, refunded, kept",
    ("none", 263, 263, 263),
    ("irreversible", 263, 261, 263),
    ("changing", 263, 261, 263),
    ("persistent", 263, 263, 261),
    ("all", 261, 261, 261),
)
async def test_setting_says_what_waits_for_an_operator(approval: str, found: int, refunded: int, kept: int) -> None:
    async with negotiating(approval=approval, persistent=True) as bench:
        assert (await bench.send("PROPOSE", "/", lodgings())).status == found
        assert (await bench.send("PROPOSE", "/", refunds(), **SCOPE)).status == refunded
        persistent = {"endpoint": lodgings(), "persistent": True}
        assert (await bench.send("PROPOSE", "/", persistent, agent=OTHER)).status == kept


async def test_rejected_proposal_is_answered_again_and_an_ended_one_410(bench: StatefulBench) -> None:
    refused = await bench.send("PROPOSE", "/", definition())
    again = await bench.send("QUERY", f"/proposals/{refused.json['proposal_id']}")
    assert (again.status, again.json["reason"]) == (463, refused.json["reason"])
    assert again.json["explanation"] == refused.json["explanation"]
    approved = await bench.send("PROPOSE", "/", lodgings())
    await bench.store.do(ReleaseSynthesis(approved.json["proposal_id"], "a" * 64))
    assert (await bench.send("QUERY", f"/proposals/{approved.json['proposal_id']}")).told("state") == (410, "released")


async def test_an_agent_lists_its_own_proposals_newest_first(bench: StatefulBench) -> None:
    sent = [await bench.send("PROPOSE", "/", one) for one in (definition(), lodgings())]
    await bench.send("PROPOSE", "/", lodgings(), agent=OTHER)
    listed = (await bench.send("QUERY", "/proposals")).json["proposals"]
    assert {one["proposal_id"] for one in listed} == {one.json["proposal_id"] for one in sent}
    assert {one["state"] for one in listed} == {"rejected", "approved"}
    assert [one["created"] for one in listed] == sorted((one["created"] for one in listed), reverse=True)


async def test_proposal_of_another_agent_is_as_if_it_did_not_exist(bench: StatefulBench) -> None:
    proposal_id = (await bench.send("PROPOSE", "/", lodgings())).json["proposal_id"]
    other = await bench.send("QUERY", f"/proposals/{proposal_id}", agent=OTHER)
    unknown = await bench.send("QUERY", "/proposals/prop-0", agent=OTHER)
    assert (other.status, other.json) == (404, unknown.json)
    assert (await bench.send("QUERY", f"/proposals/{proposal_id}", agent=None)).status == 404


def row(state: str, document: str = "{}", **fields: Any) -> ProposalRow:
    given: dict[str, Any] = {
        "proposal_id": "prop-1",
        "negotiation_id": "n1",
        "agent_id": "a",
        "session_id": "",
        "method": "FIND",
        "path": "/rooms",
        "digest": "d",
        "document": document,
        "persistent": False,
        "published": False,
        "granted": 3600.0,
        "created": 1e9,
        "expires": 1e9 + 3600,
        "decided_by": None,
        "decided_at": None,
        "reason": None,
        "revision": 1,
        "state": state,
    }
    return ProposalRow(**{**given, **fields})


@pytest.mark.parametrize(("persistent", "expires"), [(False, "session"), (True, "2001-09-09T02:46:40Z")])
def test_approval_says_how_long_it_lasts(persistent: bool, expires: str) -> None:
    stored = write_endpoint(replace(FIND, handler=Composition(recipe="r")), LODGINGS, explanation=("Calls it.",))
    approved = answer_proposal(row("approved", stored, persistent=persistent))
    assert isinstance(approved, Answer)
    body = msgspec.json.decode(approved.body)
    assert (approved.status, body["synthesis_id"], body["plan"]) == (263, "syn-1", ["Calls it."])
    assert (body["expires_at"], body["instantiated_endpoint"]["expires"]) == ("2001-09-09T02:46:40Z", expires)
    assert dict(approved.headers) == {"Synthesis-Id": "syn-1", "Negotiation-ID": "n1"}


def test_pending_proposal_says_where_to_ask() -> None:
    pending = answer_proposal(row("pending"))
    assert isinstance(pending, Answer)
    body = msgspec.json.decode(pending.body)
    assert (pending.status, body["polling_path"], body["estimated_duration"]) == (261, "/proposals/prop-1", "1h")
    assert dict(pending.headers)["Retry-After"]


@pytest.mark.parametrize("state", ["released", "expired"])
def test_ended_proposal_is_410(state: str) -> None:
    ended = answer_proposal(row(state))
    assert isinstance(ended, Refused)
    assert (ended.status, ended.details["state"]) == (410, state)


@pytest.mark.parametrize("rejections", [0, 1, 3])
def test_third_rejection_demands_an_escalation(rejections: int) -> None:
    refused = refuse_proposal(row("rejected"), {"reason": "ambiguous", "explanation": "Unclear."}, rejections)
    assert ("must_escalate" in refused.details) is (rejections == 3)
    assert ("ESCALATE" in refused.message) is (rejections == 3)
    assert refused.details["explanation"].startswith("Unclear.")


def test_turns_end_after_the_third_and_waiting_proposals_with_the_time_of_operators() -> None:
    refused = escalate("n1", 3)
    assert (refused.status, refused.details["reason"]) == (463, "policy-refused")
    assert refused.headers == (("Negotiation-ID", "n1"),)
    _, command = approve(filing(approval="all", decision=42.0))
    assert (command.state, command.lasts, command.granted) == ("pending", 42.0, 600.0)
    _, command = approve(filing(decision=42.0), was_revoked=True)
    assert (command.state, command.lasts) == ("pending", 42.0)


ENDPOINT = replace(FIND, handler=Composition(recipe=LODGINGS.name))
CONTRACT = PlannedContract(endpoint=ENDPOINT, recipe=LODGINGS, explanation=("Calls FIND /rooms.",))


def filing(session_id: str = "", duration: str | None = None, **settings: Any) -> Filing:
    call = Call(Request("PROPOSE", "/", "", {}, b"", Connection()), build(FIND).server)
    call.principal = Principal(agent_id=AGENT)
    catalog = open_catalog("1.1.0", None)[0]
    assert catalog is not None
    proposal = read_proposal({"endpoint": definition(), "requested_duration": duration}, catalog)
    assert isinstance(proposal, Proposal)
    return Filing(
        call=RoutedCall(call, call.routes.steps["PROPOSE", "/"]),
        proposal=proposal,
        owner=AGENT,
        session_id=session_id,
        settings=NegotiationSettings(**settings),
        idle=600.0,
    )


async def nothing() -> None:
    pass


def approve(made: Filing, *, keeps: bool = False, was_revoked: bool = False) -> tuple[Effects, FileProposal]:
    effects = made.approve(write_contract(CONTRACT), "n1", keeps=keeps, was_revoked=was_revoked, committed=nothing)
    command = effects.commands[-1]
    assert isinstance(command, FileProposal)
    return effects, command


def test_synthesis_is_stored_in_its_session_which_is_extended() -> None:
    effects, command = approve(filing(SESSION))
    assert effects.commands[0] == BindSession(SESSION, AGENT, "", 600.0)
    assert (command.session_id, command.state, command.granted, command.lasts) == (SESSION, "approved", 600.0, 600.0)
    assert command.proposal_id.startswith("prop-")
    assert len(approve(filing())[0].commands) == 1


def test_persistent_synthesis_belongs_to_no_session() -> None:
    _, command = approve(filing(SESSION, duration="2h"), keeps=True)
    assert (command.session_id, command.persistent, command.granted) == ("", True, 7200.0)
    _, command = approve(filing(duration="2h", max_duration=100.0), keeps=True)
    assert command.granted == 100.0


def test_counter_proposal_is_recognised_when_it_comes_back() -> None:
    rejection = Rejection(reason="ambiguous", explanation="Unclear.", counter=CONTRACT)
    effects = filing().reject(rejection, "n1")
    command = effects.commands[-1]
    assert isinstance(command, FileProposal)
    assert command.counter_digest
    assert '"recipe"' in command.document
    plain = filing().reject(Rejection(reason="ambiguous", explanation="Unclear."), "n1").commands[-1]
    assert isinstance(plain, FileProposal)
    assert plain.counter_digest is None


@pytest.mark.parametrize(
    ("reason", "status"),
    [("too-many", 429), ("too-large", 429), ("of-another", 403), ("suspended", 409), ("expired", 408)],
)
def test_conflicts_are_refused(reason: str, status: int) -> None:
    effects, _ = approve(filing(SESSION))
    refused = effects.answer(Conflict(reason, {"most": 3}))
    assert isinstance(refused, Refused)
    assert refused.status == status
