"""Choices: what values depend on."""

from __future__ import annotations

from tests.runtime.negotiation.planner.services import HOTEL

from bespeak.runtime.negotiation.planner.draft import (
    Decision,
    Given,
    Match,
    Option,
    Pick,
    PlannedCall,
    Result,
    RowValue,
)
from bespeak.runtime.negotiation.planner.operation import Field, Index
from bespeak.runtime.negotiation.planner.slot import Facts

OPERATION = Index(HOTEL).operations[0]
FIELD = Field(("x",), (), Facts())


def test_a_result_depends_on_what_its_call_and_its_pick_depend_on() -> None:
    call = PlannedCall(0, OPERATION, ((FIELD, Given(FIELD)),))
    key = Given(Field(("y",), (), Facts()))
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
