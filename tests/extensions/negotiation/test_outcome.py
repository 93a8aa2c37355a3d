"""Answers to proposals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.extensions.negotiation.definitions import definition
from tests.extensions.negotiation.negotiating import FIND, LODGINGS, SESSION
from tests.service import AGENT, build

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.handler import Composition
from bespeak.contract.negotiation import NegotiationSettings
from bespeak.extensions.negotiation.evaluation import Rejection
from bespeak.extensions.negotiation.outcome import Filing, answer, escalate, refuse
from bespeak.extensions.negotiation.plan import Contract
from bespeak.extensions.negotiation.proposal import Proposal, read_proposal
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import write_endpoint
from bespeak.runtime.answer import Answer, Effects
from bespeak.runtime.call import Call, RoutedCall
from bespeak.state.store.commands.proposals import FileProposal, ProposalRow
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Conflict


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
    approved = answer(row("approved", stored, persistent=persistent))
    assert isinstance(approved, Answer)
    body = msgspec.json.decode(approved.body)
    assert (approved.status, body["synthesis_id"], body["plan"]) == (263, "syn-1", ["Calls it."])
    assert (body["expires_at"], body["instantiated_endpoint"]["expires"]) == ("2001-09-09T02:46:40Z", expires)
    assert dict(approved.headers) == {"Synthesis-Id": "syn-1", "Negotiation-ID": "n1"}


def test_pending_proposal_says_where_to_ask() -> None:
    pending = answer(row("pending"))
    assert isinstance(pending, Answer)
    body = msgspec.json.decode(pending.body)
    assert (pending.status, body["polling_path"], body["estimated_duration"]) == (261, "/proposals/prop-1", "1h")
    assert dict(pending.headers)["Retry-After"]


@pytest.mark.parametrize("state", ["released", "expired"])
def test_ended_proposal_is_410(state: str) -> None:
    ended = answer(row(state))
    assert isinstance(ended, Refused)
    assert (ended.status, ended.details["state"]) == (410, state)


@pytest.mark.parametrize("rejections", [0, 1, 3])
def test_third_rejection_demands_an_escalation(rejections: int) -> None:
    refused = refuse(row("rejected"), {"reason": "ambiguous", "explanation": "Unclear."}, rejections)
    assert ("must_escalate" in refused.details) is (rejections == 3)
    assert ("ESCALATE" in refused.message) is (rejections == 3)
    assert refused.details["explanation"].startswith("Unclear.")


def test_no_turn_is_left_after_the_third() -> None:
    refused = escalate("n1", 3)
    assert (refused.status, refused.details["reason"]) == (463, "policy-refused")
    assert refused.headers == (("Negotiation-ID", "n1"),)


ENDPOINT = replace(FIND, handler=Composition(recipe=LODGINGS.name))
CONTRACT = Contract(endpoint=ENDPOINT, recipe=LODGINGS, explanation=("Calls FIND /rooms.",))


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
    effects = made.approve(CONTRACT, "n1", keeps=keeps, was_revoked=was_revoked, committed=nothing)
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


def test_proposal_that_waits_lasts_as_long_as_an_operator_may_take() -> None:
    _, command = approve(filing(approval="all", decision=42.0))
    assert (command.state, command.lasts, command.granted) == ("pending", 42.0, 600.0)
    _, command = approve(filing(decision=42.0), was_revoked=True)
    assert (command.state, command.lasts) == ("pending", 42.0)


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
