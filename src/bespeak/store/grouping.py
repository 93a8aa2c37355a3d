"""How many commands of one kind become one statement on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Grouping:
    """A set-based statement: arrays in, one row out for each command whose change took place.

    The first column of a row is the index of its command, from 1 (`WITH ORDINALITY`).
    """

    sql: str
    """PostgreSQL, with `$1` and so on for the arrays and `{now}` for the clock."""
    columns: Callable[[Sequence[Any]], tuple[list[Any], ...]]
    """The arrays of a list of commands."""
    result: Callable[[Any, Sequence[Any] | None], Any]
    """The result of a command from its row, or from None when it has none."""
