"""Drafts: complete plans."""

from __future__ import annotations

from tests.extensions.negotiation.planner.services import HOTEL

from bespeak.extensions.negotiation.planner.draft import (
    Decision,
    Draft,
    Given,
    Match,
    Option,
    Pick,
    PlannedCall,
    Result,
    RowValue,
)
from bespeak.extensions.negotiation.planner.operation import Index, PlanField
from bespeak.extensions.negotiation.planner.slot import Facts

FIELD = PlanField(("x",), (), Facts())
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


def test_a_result_depends_on_what_its_call_and_its_pick_depend_on() -> None:
    call = PlannedCall(0, OPERATION, ((FIELD, Given(FIELD)),))
    key = Given(PlanField(("y",), (), Facts()))
    picked = Result(call, FIELD, Pick((Match(FIELD, key),)))
    assert picked.givens == {"x", "y"}
    assert picked.calls == {call}


def test_a_call_with_a_column_of_a_row_is_made_for_each_row() -> None:
    call = PlannedCall(0, OPERATION, ((FIELD, RowValue(FIELD)),))
    assert call.is_per_row
    assert Result(call, FIELD).is_per_row


def test_a_decision_counts_once_and_others_multiply() -> None:
    decisions = [Decision("a", 0.9), Decision("a", 0.9), Decision("b", 0.5)]
    assert Option(Given(FIELD), frozenset(decisions), frozenset()).quality == 0.45
