"""A report before it has a format: its scope, its table, and the numbers of its chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.limits import read_duration
from bespeak.protocol.exchange.instant import read_instant, write_instant

MOST_ROWS: Final = 1_000  # rows of a report; a longer one says that it was cut
MOST_BARS: Final = 20
_LONGEST_CELL: Final = 300

Cell = str | int | float | bool | None


class ReportContent(msgspec.Struct, frozen=True):
    """Content of a report. Every format has the same."""

    title: str
    report_type: str
    scope: str
    generated_at: str
    generated_by: str  # server that made it
    generated_for: str  # Agent whose data it has
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool  # True if there was more than the rows have
    chart_title: str
    chart: Mapping[str, float]  # numbers of the chart by label; empty if the data have none


class ReportData(msgspec.Struct, frozen=True):
    """What a source of reports has found: the members of ReportContent that depend on it."""

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


ALL: Final = "all"
MOST_IDS: Final = 100
_LATEST: Final = 1e12
_LONGEST: Final = 256
_MEMBERS: Final = frozenset({"from", "to", "ids", "data", "filters"})


class ReportScope(msgspec.Struct, frozen=True):
    start: float = 0.0  # first time of the range, in seconds since 1970
    end: float = _LATEST  # end of the range, which is not part of it
    ids: tuple[str, ...] = ()  # records to report on; empty for all in the range
    data: str | None = None  # name of a data set
    filters: Mapping[str, Any] = {}  # filters of the data set, as its endpoint takes them

    def __str__(self) -> str:
        if self.data is not None:
            return self.data
        if self.ids:
            return f"{len(self.ids)} records by id"
        if not self.start and self.end == _LATEST:
            return ALL
        first = write_instant(self.start) if self.start else "the beginning"
        return f"{first} to {write_instant(self.end) if self.end < _LATEST else 'now'}"


def read_scope(given: str | Mapping[str, Any], now: float) -> ReportScope | str:
    if not isinstance(given, str):
        return _read_object(given)
    if given == ALL:
        return ReportScope()
    seconds = read_duration(given)
    if seconds is not None:
        return ReportScope(start=max(now - seconds, 0.0))
    first, slash, last = given.partition("/")
    if not slash:
        return f"must be all, a duration such as 7d, or a range such as 2026-11-01/2026-12-01; got {given[:80]!r}"
    return _range(first, last)


def _read_object(given: Mapping[str, Any]) -> ReportScope | str:
    unknown = [name for name in given if name not in _MEMBERS]
    if unknown:
        return f"has {unknown[0][:40]!r}; it may have {', '.join(sorted(_MEMBERS))}"
    ids, data, filters = given.get("ids", []), given.get("data"), given.get("filters", {})
    if not isinstance(ids, list) or len(ids) > MOST_IDS or not all(map(_is_name, ids)):
        return f"must have at most {MOST_IDS} ids"
    if not (data is None or _is_name(data)) or not isinstance(filters, Mapping):
        return "must name a data set in `data`, and its filters in an object"
    texts = [given.get("from", ""), given.get("to", "")]
    if not all(isinstance(text, str) for text in texts):
        return "must have times in `from` and `to`"
    found = _range(*texts)
    if isinstance(found, str):
        return found
    return msgspec.structs.replace(found, ids=tuple(dict.fromkeys(ids)), data=data, filters=filters)


def _range(first: str, last: str) -> ReportScope | str:
    start, end = (read_instant(text) if text else default for text, default in ((first, 0.0), (last, _LATEST)))
    if start is None or end is None:
        return f"has {(first if start is None else last)[:80]!r}, which is not a valid time; write 2026-11-01T08:00:00Z"
    return ReportScope(start, end) if start < end else "must begin before it ends"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable()
