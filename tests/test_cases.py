"""A table of cases fails with every case that is wrong."""

from __future__ import annotations

import pytest
from tests.cases import check_each


def check(number: int) -> None:
    assert 12 / number == 4, "not a quarter"


def test_every_failing_case_is_named_with_its_reason() -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        check_each([3, 4, 0], check, name=lambda number: f"case {number}")
    first, *others = str(failed.value).splitlines()
    assert first == "2 of 3 cases fail:"
    assert "case 4: AssertionError: not a quarter" in others
    assert "case 0: ZeroDivisionError: division by zero" in others
    assert not any(line.startswith("case 3") for line in others)


def test_cases_that_hold_pass() -> None:
    check_each([3, 3], check)


def test_an_empty_table_fails() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        check_each([], check)
