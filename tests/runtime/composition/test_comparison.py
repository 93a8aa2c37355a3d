"""Comparisons: numbers, dates and times by value, other texts by characters."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.recipe import COMPARISONS
from bespeak.runtime.composition.values import COMPARE, normal


def compare(left: Any, op: str, right: Any) -> bool:
    return COMPARE[op](right)(left)


def test_every_operator_with_a_right_side_can_be_computed() -> None:
    assert {*COMPARE, "present", "absent"} == {*COMPARISONS}


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (2, "eq", 2.0),
        ("a", "ne", "A"),
        (9, "lt", 10),
        ("9", "gt", "10"),
        ("2026-01-01T01:00:00+01:00", "eq", "2026-01-01T00:00:00Z"),
        ("2026-01-01", "lt", "2026-01-01T00:00:01Z"),
        ("2026-01-01", "lte", "2026-01-01T00:00:00"),
        ("Sea View", "contains", "sea"),
        ([1, 2], "contains", 2),
        ("a", "in", ["a", "b"]),
        ({"b": 1, "a": 2}, "eq", {"a": 2, "b": 1}),
    ],
)
def test_comparisons_that_hold(left: Any, op: str, right: Any) -> None:
    assert compare(left, op, right)


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (1, "eq", True),
        (1, "eq", "1"),
        (1, "lt", "2"),
        ("2026-99-99", "eq", "2026-01-01"),
        (5, "contains", 5),
        ("a", "in", "abc"),
        ("a", "contains", 1),
    ],
)
def test_comparisons_that_do_not_hold(left: Any, op: str, right: Any) -> None:
    assert not compare(left, op, right)


def test_a_text_that_only_looks_like_a_date_is_a_text() -> None:
    assert normal("2026-02-31") == normal("2026-02-31")
    assert normal("2026-02-31")[0] == normal("x")[0]
