"""Rows of evaluated proposals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.definitions import definition
from tests.runtime.negotiation.negotiating import FIND, LODGINGS, SESSION
from tests.service import AGENT, build

from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.handler import Composition
from bespeak.contract.negotiation import NegotiationSettings
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.negotiation.evaluation import Rejection
from bespeak.runtime.negotiation.outcome import Filing
from bespeak.runtime.negotiation.plan import Contract
from bespeak.runtime.negotiation.proposal import Proposal, read_proposal
from bespeak.state.store.commands.proposals import FileProposal
from bespeak.state.store.commands.sessions import BindSession
from bespeak.state.store.store import Conflict

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
