"""Answers to proposals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.runtime.negotiation.negotiating import FIND, LODGINGS

from bespeak.contract.handler import Composition
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import write_endpoint
from bespeak.runtime.answer import Answer
from bespeak.runtime.negotiation.outcome import answer, escalate, refuse
from bespeak.state.store.commands.proposals import ProposalRow


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
