"""A test of growth tells linear work from quadratic."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear, count_lines


def linear(size: int) -> int:
    return sum(number for number in range(size))


def quadratic(size: int) -> int:
    return sum(inner for outer in range(size) for inner in range(outer))


def test_linear_work_passes() -> None:
    assert_linear(linear, 100)


def test_quadratic_work_fails_with_its_counts() -> None:
    with pytest.raises(AssertionError, match="lines for a size of 100, but"):
        assert_linear(quadratic, 100)


def test_every_turn_of_a_loop_counts() -> None:
    assert count_lines(lambda: linear(1000)) - count_lines(lambda: linear(500)) >= 500
