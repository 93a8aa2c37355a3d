"""Parametrized tests that need no fixture run as one test: a loop over their cases that reports every failure.

A case that takes a millisecond takes another one to be collected, set up, reported and torn down, and half of all
cases are such. A run that names a test or uses -k, --lf or the like has every case as a test of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import is_hypothesis_test
from tests.cases import check_each

_PARAMETER_SET = type(pytest.param())
_SELECTING = ("keyword", "lf", "failedfirst", "stepwise", "usepdb")


def cases_are_selected(config: pytest.Config) -> bool:
    """Return True for a run that selects cases: each must be a test that can be selected."""
    return any("::" in name for name in config.args) or any(config.getoption(name, None) for name in _SELECTING)


class _Table(NamedTuple):
    """The arguments of one `pytest.mark.parametrize`."""

    arguments: list[str]
    values: Sequence[Any]
    ids: Any

    def row(self, number: int) -> dict[str, Any]:
        value = self.values[number]
        return dict(zip(self.arguments, value if len(self.arguments) > 1 else (value,), strict=True))

    def name(self, number: int) -> str:
        if isinstance(self.ids, Sequence):
            return str(self.ids[number])
        return ", ".join(f"{name}={value!r:.200}" for name, value in self.row(number).items())


def as_loop(test: object) -> Callable[[], None] | None:
    """Turn a parametrized test into a function that runs all its cases; None if more than its tables decide on it."""
    if not inspect.isfunction(test) or inspect.iscoroutinefunction(test) or is_hypothesis_test(test):
        return None
    marks = getattr(test, "pytestmark", [])
    tables = [_read(mark) for mark in marks if mark.name == "parametrize"]
    others = [mark for mark in marks if mark.name != "parametrize"]
    if not tables or None in tables or any(mark.name != "requirement" for mark in others):
        return None
    read = [table for table in tables if table is not None]
    if {name for table in read for name in table.arguments} != {*inspect.signature(test).parameters}:
        return None

    @wraps(test)
    def loop() -> None:
        def check(numbers: tuple[int, ...]) -> None:
            rows = [table.row(number) for table, number in zip(read, numbers, strict=True)]
            test(**{name: value for row in rows for name, value in row.items()})

        def name(numbers: tuple[int, ...]) -> str:
            return "; ".join(table.name(number) for table, number in zip(read, numbers, strict=True))

        check_each(product(*(range(len(table.values)) for table in read)), check, name)

    loop.__signature__ = inspect.Signature()  # type: ignore[attr-defined] # from here pytest reads the fixtures
    loop.pytestmark = others  # type: ignore[attr-defined] # without the tables, which are run above
    return loop


def _read(mark: pytest.Mark) -> _Table | None:
    """Read a table; None if cases have marks or fixtures, or if there are none, which pytest reports."""
    if len(mark.args) != 2 or mark.kwargs.keys() - {"ids"} or not isinstance(mark.args[1], Sequence | dict | set):
        return None
    names, values = mark.args[0], list(mark.args[1])
    if not values or any(isinstance(value, _PARAMETER_SET) for value in values):
        return None
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    return _Table(arguments, values, mark.kwargs.get("ids"))
