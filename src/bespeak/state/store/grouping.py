"""How many commands of one kind become one statement on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

AGAIN: Final = object()
"""A result that says: the statement could not tell, so run this command by itself."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A change of many rows at once, and what it answers to each command.

    In its SQL stand `{now}` for the clock, `{input}` for a table with a row for each command, whose columns are
    `fields` and `n`, the number of the command from 1, and `{change}` for the rows that the change returns.
    """

    fields: Mapping[str, str]
    """The attributes of a command that the statement needs, with their PostgreSQL types."""
    change: str
    """The INSERT, UPDATE or DELETE."""
    result: Callable[[Any, Sequence[Any] | None], Any]
    """The result of a command from its row of `answer`, or from None when it has none."""
    answer: str | None = None
    """A SELECT with the number of a command in its first column, `n`; None where there is nothing to tell."""
    row: Callable[[Any], Hashable] | None = None
    """The row that a command changes: two commands that change the same one are not run in one statement."""
    seal: Callable[[Any], tuple[str, Mapping[str, Any]]] | None = None
    """The agent and the payload to seal for a command, whose `Sealed` then takes its place in all of the above."""
    single: bool = False
    """Whether a command is grouped only if it is its whole unit: its result may be `AGAIN`."""
    topic: str | None = None
    """Whom to wake after the change."""
