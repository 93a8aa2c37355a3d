"""Refusals name the rule and the way out."""

from __future__ import annotations

from tests.service import build

from bespeak.contract.ontology.matching import NOT_PROVIDED
from bespeak.contract.ontology.profile import Verdict, Violation
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.extensions.semantics.calls import refuse_change, refuse_missing, refuse_outcome, refuse_unknown
from bespeak.extensions.semantics.negotiation import SemanticOutcome
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call


def call() -> Call:
    return Call(
        Request("BOOK", "/room", "", {"task-id": "t-1"}, b"", Connection()),
        build(semantic=SemanticSettings()).dispatcher.server,
    )


def test_status_follows_from_the_verdict() -> None:
    broken = (Violation.of(NOT_PROVIDED, "/capabilityRefs/0", "x:a", "x:b"),)
    rejected = refuse_outcome(
        call(), SemanticOutcome(match="none", explanation=(), verdict=Verdict("reject", broken)), ()
    )
    assert (rejected.status, rejected.code) == (422, "semantic-rejected")
    assert rejected.message == "/capabilityRefs/0 is 'x:a'; the endpoint provides 'x:b'. " + (
        "Correct the semantic profile and repeat the call."
    )
    assert "control" not in rejected.details
    open_ = refuse_outcome(
        call(), SemanticOutcome(match="none", explanation=(), verdict=Verdict("renegotiate", broken)), ("x:o",)
    )
    assert (open_.status, open_.code, open_.details["ontologies"]) == (409, "semantic-renegotiation", ["x:o"])


def test_each_refusal_says_what_to_do() -> None:
    assert "PROPOSE the new profile" in refuse_change(call(), "d").message
    assert "Send an envelope" in refuse_missing(call(), ()).message
    assert refuse_missing(call(), ()).details["task_id"] == "t-1"
    assert "PROPOSE the profile again" in refuse_unknown("x" * 500).message
    assert len(refuse_unknown("x" * 500).message) < 250
