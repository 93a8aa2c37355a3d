"""Tables of cases in one test: every case is checked, and one failure reports all that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")


def rows(names: str, *values: Any, ids: Any = None) -> pytest.MarkDecorator:
    """Parametrize a test with a table: `@rows("text, length", ("", 0), ("a", 1))`."""
    return pytest.mark.parametrize(names, values, **({} if ids is None else {"ids": ids}))


def check_each(
    cases: Iterable[Case], check: Callable[[Case], object], name: Callable[[Case], object] = lambda case: case
) -> None:
    """Run a check on every case and fail with the name and the reason of each case that raises."""
    table = list(cases)
    assert table, "there are no cases"
    failures = []
    for case in table:
        try:
            check(case)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - each has its report
            failures.append(f"{name(case)}: {type(error).__name__}: {error}")
    if failures:
        pytest.fail("\n".join([f"{len(failures)} of {len(table)} cases fail:", *failures]), pytrace=False)
