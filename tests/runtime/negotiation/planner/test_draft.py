"""Drafts: complete plans."""

from __future__ import annotations

from tests.runtime.negotiation.planner.services import HOTEL

from bespeak.runtime.negotiation.planner.draft import Decision, Draft, Given, PlannedCall, Result
from bespeak.runtime.negotiation.planner.operation import Field, Index
from bespeak.runtime.negotiation.planner.slot import Facts

FIELD = Field(("x",), (), Facts())
OPERATION = Index(HOTEL).operations[0]


def test_calls_come_after_those_that_they_need() -> None:
    first = PlannedCall(1, OPERATION, ())
    second = PlannedCall(0, OPERATION, ((FIELD, Result(first, FIELD)),))
    assert Draft(singles=((FIELD, Result(second, FIELD)),)).calls == (first, second)


def test_an_input_that_is_only_repeated_changes_nothing() -> None:
    assert Draft(singles=((FIELD, Given(FIELD)),)).givens == frozenset()


def test_ten_fields_of_one_call_are_one_decision() -> None:
    draft = Draft(decisions=frozenset({Decision("a", 0.9)}), weakest=0.8)
    assert round(draft.quality, 6) == 0.72
    assert round(draft.judged(Decision("b", 0.5)).quality, 6) == 0.36
