"""Replies of a service in terms of AGTP."""

from __future__ import annotations

from bespeak.protocol.exchange.refusal import Outcome, Refused, refused


def test_a_refusal_is_an_outcome_with_its_details() -> None:
    found = refused(Refused(422, "sold", "The seat is sold.", {"free": ["A2"]}))
    assert found == Outcome(422, error={"code": "sold", "message": "The seat is sold.", "free": ["A2"]})
    assert (found.ok, Outcome(200, {"seat": "A1"}).ok) == (False, True)


def test_a_call_that_waits_for_a_confirmation_names_its_case() -> None:
    error = {"code": "confirmation-required", "message": "Wait.", "confirmation_id": "conf-1"}
    assert Outcome(262, error=error).confirmation_id == "conf-1"
    assert Outcome(262, error={**error, "code": "sold"}).confirmation_id is None
    assert Outcome(262, error={**error, "confirmation_id": 1}).confirmation_id is None
