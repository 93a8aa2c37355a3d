"""A report before it has a format: a table, the numbers of its chart, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

MOST_ROWS: Final = 1_000
"""Rows of a report; a longer one says that it was cut."""
MOST_BARS: Final = 20
_LONGEST_CELL: Final = 300

Cell = str | int | float | bool | None


class Report(msgspec.Struct, frozen=True):
    """Content of a report. Every format has the same."""

    title: str
    report_type: str
    scope: str
    generated_at: str
    generated_by: str
    """Server that made it."""
    generated_for: str
    """Agent whose data it has."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool
    """True if there was more than the rows have."""
    chart_title: str
    chart: Mapping[str, float]
    """Numbers of the chart by label; empty if the data have none."""


class Findings(msgspec.Struct, frozen=True):
    """What a source of reports has found."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False
    chart_title: str = ""
    chart: Mapping[str, float] = {}


def as_cell(value: Any) -> Cell:
    """Return a value as it appears in a cell: numbers as they are, texts in one bounded line without controls."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    line = "".join(one if one.isprintable() else " " for one in text[: _LONGEST_CELL + 1])
    return line if len(line) <= _LONGEST_CELL else line[: _LONGEST_CELL - 1] + "…"


def sum_by(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Add numbers up by label; the labels beyond the largest share one bar."""
    sums: dict[str, float] = {}
    for label, number in pairs:
        sums[label] = sums.get(label, 0) + number
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    kept = dict(ordered[:MOST_BARS])
    if len(ordered) > MOST_BARS:
        kept.pop(ordered[MOST_BARS - 1][0])
        kept["others"] = sum(number for _, number in ordered[MOST_BARS - 1 :])
    return kept
