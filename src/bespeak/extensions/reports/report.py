"""A report before it has a format: the value that a function of the service returns, its scope, tables and charts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from statistics import median
from typing import Any, Final, Literal

import msgspec

from bespeak.contract.limits import read_duration
from bespeak.contract.schema.validation import non_finite
from bespeak.errors import ContractError
from bespeak.extensions.payments.purchases import PURCHASE
from bespeak.extensions.payments.settings import Money
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.state.store.commands.records import FindRecord, ListRecords, Record, read_each

MOST_ROWS: Final = 1_000  # rows of a built-in report; a longer one says that it was cut
MOST_CELLS: Final = 100_000  # cells, figures and points of a report that a function of the service makes
MOST_BARS: Final = 20
_MOST_ORDERED: Final = 40  # bars that keep the order of the function
_LONGEST_CELL: Final = 300
_LONGEST_TEXT: Final = 20_000

Cell = str | int | float | bool | None


class Chart(msgspec.Struct, frozen=True):
    """A chart of a `Report`: numbers by label, as bars, or as a line in their order."""

    title: str
    points: dict[str, float]
    kind: Literal["bar", "line"] = "bar"


class Table(msgspec.Struct, frozen=True):
    """A table of a `Report`: rows are dataclasses, models or dicts whose fields are the columns."""

    rows: list[Any]
    title: str = ""
    truncated: bool = False
    """True if there are more rows than it has."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a function declared with `App.report` returns if rows are not enough. All of it is text, never markup."""

    title: str = ""
    text: str = ""
    """Paragraphs, which an empty line separates."""
    figures: dict[str, Any] = {}
    """Key numbers by label."""
    charts: list[Chart] = []
    tables: list[Table] = []


class ReportContent(Report, frozen=True, kw_only=True):
    """Content of a report, the same in every format. Values are cells; all rows of a table have its columns."""

    report_type: str
    scope: str
    generated_at: str
    generated_by: str  # server that made it
    generated_for: str  # Agent whose data it has


def read_output(output: Any) -> Report | str:
    """Read the JSON data that a function returned; return what is wrong with the scope if there are too many.

    Raises ContractError if they cannot be a report.
    """
    given = msgspec.convert({"tables": [{"rows": output}]} if isinstance(output, list) else output, Report)
    for place in non_finite(output):
        raise ContractError(f"{place.pointer} is not a finite number; return None where there is no number")
    if not all(isinstance(row, Mapping) for table in given.tables for row in table.rows):
        raise ContractError("a row has no named fields; return dataclasses, models or dicts")
    columns = [dict.fromkeys(name for row in table.rows for name in row) for table in given.tables]
    cells = sum(len(names) * len(table.rows) for names, table in zip(columns, given.tables, strict=True))
    cells += len(given.figures) + sum(len(chart.points) for chart in given.charts)
    if cells > MOST_CELLS:
        return f"selects {cells} cells, more than {MOST_CELLS}; narrow it"
    tables = []
    for names, table in zip(columns, given.tables, strict=True):
        rows = [{as_line(name): as_cell(row.get(name)) for name in names} for row in table.rows]
        tables.append(Table(rows, as_line(table.title), table.truncated))
    paragraphs = (" ".join(as_line(part, _LONGEST_TEXT).split()) for part in given.text[:_LONGEST_TEXT].split("\n\n"))
    return Report(
        title=as_line(given.title),
        text="\n\n".join(filter(None, paragraphs)),
        figures={as_line(label): as_cell(value) for label, value in given.figures.items()},
        charts=[Chart(as_line(one.title), _points(one), one.kind) for one in given.charts],
        tables=tables,
    )


def _points(chart: Chart) -> dict[str, float]:
    points = {as_line(label): number for label, number in chart.points.items()}
    return points if chart.kind == "line" or len(points) <= _MOST_ORDERED else sum_by(points.items())


def as_cell(value: Any) -> Cell:
    """Return a value as it appears in a cell: numbers as they are, texts in one bounded line without controls."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return as_line(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def as_line(text: str, most: int = _LONGEST_CELL) -> str:
    line = text[: most + 1]
    line = line if line.isprintable() else "".join(one if one.isprintable() else " " for one in line)
    return line if len(line) <= most else line[: most - 1] + "…"


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
        filters = [f"{name}: {as_cell(value)}" for name, value in self.filters.items()]
        first = write_instant(self.start) if self.start else "the beginning"
        times = f"{first} to {write_instant(self.end) if self.end < _LATEST else 'now'}"
        return as_line(", ".join([times if self.start or self.end != _LATEST else ALL, *filters]))

    def bounds(self, now: float, *, days: bool) -> tuple[str, str]:
        """Return start and end as timestamps, or as days. The end is not part of the range, so its day is the next."""
        end = min(self.end, max(now, self.start + 1))
        first, last = write_instant(self.start), write_instant(end + -end % 86400 if days else end)
        return (first[:10], last[:10]) if days else (first, last)


def read_scope(given: str | Mapping[str, Any], now: float) -> ReportScope | str:
    if not isinstance(given, str):
        return _read_object(given, now)
    if given == ALL:
        return ReportScope()
    seconds = read_duration(given)
    if seconds is not None:
        return ReportScope(start=max(now - seconds, 0.0))
    first, slash, last = given.partition("/")
    if not slash:
        return f"must be all, a duration such as 7d, or a range such as 2026-11-01/2026-12-01; got {given[:80]!r}"
    return _range(first, last)


def _read_object(given: Mapping[str, Any], now: float) -> ReportScope | str:
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
    seconds = read_duration(texts[0])
    found = _range(*texts) if seconds is None else _range(write_instant(max(now - seconds, 0.0)), texts[1])
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


_PAGE: Final = 250
_OF_PURCHASE: Final = ("State", "Item", "Principal", "Amount", "Currency", "Refunded")
_SENT: Final = ("notification", "alert", "broadcast", "publication", "delivery")  # kinds of what an agent has sent
# Reads the data of a report, or says what is wrong with its scope.
Gather = Callable[[RoutedCall, ReportScope], Awaitable[Report | str]]


async def _own_records(call: RoutedCall, kinds: tuple[str, ...], scope: ReportScope) -> tuple[list[Record], bool]:
    """Return records of the caller, oldest first, and True if there are more than a report has."""
    store, owner = call.store, call.agent_id or ""
    found: list[Record] = []
    if scope.ids:
        for record_id in scope.ids:
            record = await store.read(FindRecord(kinds, record_id))
            if record is not None and record.owner == owner:
                found.append(record)
        return [record for record in found if scope.start <= record.created < scope.end], False
    for kind in kinds:
        taken = 0
        async for record in read_each(store, ListRecords(kind, owner, after=(scope.start, ""), limit=_PAGE)):
            if record.created >= scope.end or taken > MOST_ROWS:
                break
            found.append(record)
            taken += 1
    found.sort(key=lambda record: (record.created, record.record_id))
    return found[:MOST_ROWS], len(found) > MOST_ROWS


def _table(rows: list[dict[str, Cell]], cut: bool, title: str, chart: dict[str, float]) -> Report:
    return Report(tables=[Table(rows, truncated=cut)], charts=[Chart(title, chart)] if chart else [])


def _reporting(
    kinds: tuple[str, ...], title: str, columns: tuple[str, ...], *by: str, amount: str | None = None
) -> Gather:
    """Make a source of records: the columns of each, and those by which the chart counts, or adds up an amount."""

    async def gather(call: RoutedCall, scope: ReportScope) -> Report | str:
        records, cut = await _own_records(call, kinds, scope)
        rows: list[dict[str, Cell]] = []
        for record in records:
            content = record.content()
            values = {name: as_cell(_CELLS[name](record, content)) for name in columns}
            rows.append({"Id": record.record_id, "Time": write_instant(record.created), **values})
        labels = (", ".join(str(row[name]) for name in by) for row in rows)
        numbers = (1 if amount is None else float(str(row[amount])) for row in rows)
        return _table(rows, cut, title, sum_by(zip(labels, numbers, strict=True)))

    return gather


async def _costs(call: RoutedCall, scope: ReportScope) -> Report | str:
    """Report what the caller's own calls cost: by their contracts, and by what the latest of this process took."""
    if scope != ReportScope():
        return "must be all: costs are those of the latest calls"
    rows: list[dict[str, Cell]] = []
    chart: list[tuple[str, float]] = []
    for key, endpoint in sorted(call.routes.endpoints.items()):
        seconds = call.server.part("costs").find_own(key, call.agent_id or "") if endpoint.is_listed else []
        if seconds:
            cost = endpoint.cost.amounts if endpoint.cost else {}
            declared = ", ".join(f"{amount} {unit}" for unit, amount in cost.items())
            took = round(median(seconds), 6)
            named = {"Method": key[0], "Path": key[1], "Declared": declared, "Calls": len(seconds), "Seconds": took}
            rows.append(named)
            chart.append((" ".join(key), took))
    return _table(rows[:MOST_ROWS], len(rows) > MOST_ROWS, "Median seconds of a call", sum_by(chart))


async def _data(call: RoutedCall, scope: ReportScope) -> Report | str:
    """Report the rows of a data set that the caller may negotiate over."""
    route = call.routes.steps.get(("QUERY", f"/data/{scope.data}")) if call.routes.policies.synthesis_enabled else None
    data_class = None if route is None else route.endpoint.data_class
    if route is None or data_class is None or call.principal.scopes.missing(route.endpoint.required_scopes):
        return 'must name a data set of this server, as {"data": NAME}'
    most = min(MOST_ROWS, route.endpoint.input_schema["properties"]["limit"]["maximum"])
    values = {**scope.filters, "limit": most}
    if not route.input.is_valid(values):
        return "has filters that the data set does not take"
    page = await route.endpoint.handler.target(values)  # type: ignore[union-attr, misc]
    if isinstance(page, Refused):
        return f"cannot be read: {page.message}"
    columns = dict.fromkeys(name for row in page["rows"] for name in row)
    rows = [{name: as_cell(row.get(name)) for name in columns} for row in page["rows"]]
    return _table(rows, "next_cursor" in page, *_numbers(list(columns), rows))


def _numbers(columns: list[str], rows: list[dict[str, Cell]]) -> tuple[str, dict[str, float]]:
    """Sum the first column of amounts by the first column of texts, if there are both."""
    kinds = {name: {type(row[name]) for row in rows if row[name] is not None} for name in columns}
    label = next((name for name in columns if kinds[name] == {str}), None)
    amount = next((name for name in columns if name != "id" and kinds[name] and kinds[name] <= {int, float}), None)
    if label is None or amount is None:
        return "", {}
    pairs = ((str(row[label] or "none"), row[amount]) for row in rows)
    return f"{amount} by {label}", sum_by((name, number) for name, number in pairs if isinstance(number, (int, float)))


_CELLS: Final[Mapping[str, Callable[[Record, Any], Any]]] = {
    "Kind": lambda record, _: record.kind,
    "State": lambda record, _: record.state,
    "Method": lambda _, content: content["method"],
    "Steps": lambda _, content: len(content["steps"]),
    "Recipients": lambda _, content: ", ".join(content.get("recipients", ())) or content.get("recipient"),
    "Event": lambda _, content: content["event_type"],
    "Severity": lambda _, content: content["severity"],
    "Correlation": lambda _, content: content.get("correlation_id"),
    "Data": lambda _, content: content["data"],
    "Item": lambda _, content: content["item"],
    "Principal": lambda _, content: content["principal_id"],
    "Amount": lambda _, content: str(Money(**content["money"]).amount),
    "Currency": lambda _, content: content["money"]["currency"],
    "Refunded": lambda _, content: str(Money(content.get("refund") or 0, content["money"]["currency"]).amount),
    "Changed": lambda record, _: write_instant(record.updated),
}  # cells of a record and its content, by column
SOURCES: Final[Mapping[str, Gather]] = {  # the reports of every server, by type
    "workflows": _reporting((WORKFLOW,), "Workflows by state", ("State", "Method", "Steps", "Changed"), "State"),
    "purchases": _reporting(
        *((PURCHASE,), "Amount by state and currency", _OF_PURCHASE, "State", "Currency"), amount="Amount"
    ),
    "messages": _reporting(_SENT, "Messages by kind", ("Kind", "State", "Recipients", "Changed"), "Kind"),
    "log": _reporting(("log",), "Events by severity", ("Event", "Severity", "Correlation", "Data"), "Severity"),
    "costs": _costs,
    "data": _data,
}
