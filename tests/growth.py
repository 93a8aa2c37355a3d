"""How the work of a function grows with its input, counted in lines that are run: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(work: Callable[[], object]) -> int:
    """Count the lines of Python that are run while `work` is."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail if four times the size takes more than six times the work, as a quadratic function would."""
    work(size)  # fills the caches
    small, large = count_lines(lambda: work(size)), count_lines(lambda: work(4 * size))
    assert large < 6 * small, f"{small:,} lines for a size of {size}, but {large:,} for four times as much"
