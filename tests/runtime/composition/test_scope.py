"""Scope: what sources read, and how much they may look at."""

from __future__ import annotations

import pytest

from bespeak.runtime.composition.values import MISSING, MOST_ROWS, Scope, UnmetError, is_there


def test_null_is_not_there_but_zero_and_empty_are() -> None:
    assert [is_there(value) for value in (MISSING, None, 0, "", [])] == [False, False, True, True, True]


def test_a_new_output_makes_indexes_of_old_ones_invalid() -> None:
    scope = Scope({})
    scope.indexes[1] = {}
    scope.capture("rooms", [])
    assert (scope.captured, scope.indexes) == ({"rooms": []}, {})


def test_the_rows_of_one_run_are_bounded() -> None:
    scope = Scope({})
    scope.spend(MOST_ROWS)
    with pytest.raises(UnmetError, match="comparisons"):
        scope.spend(1)
