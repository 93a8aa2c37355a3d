"""How many commands of one kind become one statement on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

AGAIN: Final = object()
"""Result of the first command of a unit that has to run again by itself."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A change of many rows at once, and its result for each command.

    In its SQL `{now}` is the clock, `{input}` a table with a row for each command (columns: `fields`, and `n`, the
    number of the command from 1), `{parts}` one with a row for each part of each command, and `{change}` the rows that
    the change returns.
    """

    fields: Mapping[str, str]
    """Attributes of a command that the statement needs, with their PostgreSQL types."""
    change: str
    """INSERT, UPDATE or DELETE statement, or a SELECT that locks rows."""
    result: Callable[[Any, Sequence[Any] | None], Any]
    """Function from a command's row of `answer`, or None, to its result."""
    answer: str | None = None
    """SELECT with the number of the command in its first column, `n`; None if there is no result."""
    rows: Callable[[Any], Collection[Hashable]] | None = None
    """Rows that a command changes: commands that change the same row do not share a statement."""
    shared: Callable[[Any], Hashable] | None = None
    """Row that a command only needs to stay as it is: commands that change it do not share a statement with it."""
    seal: Callable[[Any], tuple[str, Any]] | None = None
    """Agent and payload to seal; the `Sealed` record then takes the command's place in the other functions."""
    independent: bool = False
    """True if a command that can end in a Conflict may follow others in a unit: they change nothing that it judges."""
    single: bool = False
    """True if a command is grouped only when it is its whole unit."""
    parts: tuple[str, Mapping[str, str]] | None = None
    """Attribute with a command's parts, and the attributes of a part that the statement needs, with their types."""
    after: str | None = None
    """Second INSERT, UPDATE or DELETE, which may use `{change}`."""
    topics: Callable[[Any], Collection[str]] | None = None
    """Topics to notify after the change of a command."""
