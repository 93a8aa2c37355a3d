"""Many commands as one PostgreSQL statement, whatever their kinds: one round trip, one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from bespeak.state.store.command import Command
from bespeak.state.store.dialect import postgres_sql
from bespeak.state.store.grouping import Grouping

CHANNEL: Final = "bespeak"
"""Channel on which processes announce changed topics."""
NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', topic) FROM unnest($1::text[]) AS topic"
_KNOWN: Final = 256
"""Cache size: there are as many texts as combinations of kinds."""

Kind = type[Command]


class Entry:
    """One command in a batch and its result."""

    __slots__ = ("command", "item", "required", "result")

    def __init__(self, command: Command, *, required: bool = False) -> None:
        self.command = command
        self.item: Any = command
        """Argument of the grouping functions: the command, or its sealed record."""
        self.required = required
        """True if the whole batch fails unless this command succeeds."""
        self.result: Any = None


class Batch:
    """Commands that go to the database together, sorted by kind."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        kinds: dict[Kind, list[Entry]] = {}
        for entry in entries:
            kinds.setdefault(type(entry.command), []).append(entry)
        # Sorted, so that the same kinds are the same statement to the database.
        self._kinds = sorted(kinds.items(), key=lambda kind: kind[0].__name__)
        self._topics: set[str] = set()
        self._topics.update(*(topics_of(entry.command) for entry in entries))

    def statement(self) -> tuple[str, list[Any]]:
        """Return the text and its parameters."""
        parameters: list[Any] = []
        checks = []
        for place, (kind, entries) in enumerate(self._kinds):
            grouping = grouping_of(kind)
            parameters += [[getattr(entry.item, name) for entry in entries] for name in grouping.fields]
            if grouping.parts is not None:
                parameters += _flatten(entries, *grouping.parts)
            required = [number for number, entry in enumerate(entries, 1) if entry.required]
            if required:
                checks.append(place)
                parameters.append(required)
        if self._topics:
            parameters.append(sorted(self._topics))
        return _text(tuple(kind for kind, _ in self._kinds), tuple(checks), bool(self._topics)), parameters

    def answer(self, row: Sequence[Any]) -> None:
        """Set the result of each command from the one row of the statement."""
        for (kind, entries), found in zip(self._kinds, row, strict=False):
            result = grouping_of(kind).result
            rows = {answered[0]: answered for answered in found or ()}
            for number, entry in enumerate(entries, 1):
                entry.result = result(entry.item, rows.get(number))


def grouping_of(kind: Kind) -> Grouping:
    """Return the grouping of a kind; only for kinds that have one."""
    assert kind.grouping is not None
    return kind.grouping


def topics_of(command: Command) -> Collection[str]:
    """Return the topics that a command of a grouped kind notifies."""
    topics = grouping_of(type(command)).topics
    return () if topics is None else topics(command)


def _flatten(entries: Sequence[Entry], attribute: str, fields: Mapping[str, str]) -> list[list[Any]]:
    """Return the columns of the parts of all commands: the number of the command, then the fields."""
    parts = [(number, part) for number, entry in enumerate(entries, 1) for part in getattr(entry.item, attribute)]
    return [[number for number, _ in parts], *([getattr(part, name) for _, part in parts] for name in fields)]


@lru_cache(_KNOWN)
def _text(kinds: tuple[Kind, ...], checks: tuple[int, ...], topics: bool) -> str:
    """Build the statement. Each kind has tables: the input, its parts, the rows of the change, and the answer.

    A required command that fails divides by zero, which undoes the whole statement. Nothing gentler stops a statement
    from within, and another statement would be another round trip.
    """
    tables, columns, conditions = [], [], []
    number = 0
    for place, kind in enumerate(kinds):
        grouping = grouping_of(kind)
        names = ", ".join(grouping.fields)
        arrays = _arrays(number, grouping.fields)
        number += len(grouping.fields)
        tables.append(f"i{place} AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS t({names}, n))")
        if grouping.parts is not None:
            fields = {"n": "bigint", **grouping.parts[1]}
            tables.append(f"p{place} AS (SELECT * FROM unnest({_arrays(number, fields)}) AS t({', '.join(fields)}))")
            number += len(fields)
        tables.append(f"c{place} AS ({_named(grouping.change, place)})")
        if grouping.after is not None:
            tables.append(f"a{place} AS ({_named(grouping.after, place)})")
        if grouping.answer is None:
            columns.append("NULL")
        else:
            tables.append(f"r{place} AS ({_named(grouping.answer, place)})")
            columns.append(f"ARRAY(SELECT ROW(r{place}.*) FROM r{place})")
        if place in checks:
            number += 1
            done = f"SELECT count(*) FROM r{place} WHERE n = ANY(${number}::bigint[])"
            conditions.append(f"1 / (({done}) = cardinality(${number}::bigint[]))::int")
    if topics:
        number += 1
        woken = NOTIFY.replace("$1", f"${number}")
        conditions.append(f"ARRAY(SELECT w::text FROM ({woken}) AS w)")
    return f"WITH {', '.join(tables)} SELECT {', '.join(columns + conditions)}"


def _arrays(before: int, fields: Mapping[str, str]) -> str:
    """Return the parameters of the columns of a table, as arrays; `before` parameters come earlier."""
    return ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(fields.values(), before + 1))


def _named(sql: str, place: int) -> str:
    for word, letter in (("{input}", "i"), ("{parts}", "p"), ("{change}", "c")):
        sql = sql.replace(word, f"{letter}{place}")
    return postgres_sql(sql)
