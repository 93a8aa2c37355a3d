"""Sources of reports: what a caller has recorded here, and the data sets that it may read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from statistics import median
from typing import Any, Final

from bespeak.extensions.payments.purchases import PURCHASE
from bespeak.extensions.payments.purchases import decode as decode_purchase
from bespeak.extensions.payments.settings import Money
from bespeak.extensions.reports.report import MOST_ROWS, Cell, Chart, Report, ReportScope, Table, as_cell, sum_by
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.state.store.commands.records import FindRecord, ListRecords, Record

_PAGE: Final = 250
_SENT: Final = ("notification", "alert", "broadcast", "publication", "delivery")  # kinds of what an agent has sent
# Reads the data of a report, or says what is wrong with its scope.
Gather = Callable[[RoutedCall, ReportScope], Awaitable[Report | str]]


async def _own_records(call: RoutedCall, kinds: tuple[str, ...], scope: ReportScope) -> tuple[list[Record], bool]:
    """Return records of the caller, oldest first, and True if there are more than a report has."""
    store, owner = call.server.store, call.agent_id or ""
    assert store is not None
    found: list[Record] = []
    if scope.ids:
        for record_id in scope.ids:
            record = await store.read(FindRecord(kinds, record_id))
            if record is not None and record.owner == owner:
                found.append(record)
        return [record for record in found if scope.start <= record.created < scope.end], False
    for kind in kinds:
        after, taken = (scope.start, ""), 0
        while taken <= MOST_ROWS:
            page: list[Record] = await store.read(ListRecords(kind, owner, after=after, limit=_PAGE))
            within = [record for record in page if record.created < scope.end]
            found += within
            taken += len(within)
            if len(page) < _PAGE or len(within) < len(page):
                break
            after = (page[-1].created, page[-1].record_id)
    found.sort(key=lambda record: (record.created, record.record_id))
    return found[:MOST_ROWS], len(found) > MOST_ROWS


def _table(
    columns: tuple[str, ...], rows: Iterable[tuple[Cell, ...]], cut: bool, title: str, chart: dict[str, float]
) -> Report:
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return Report(tables=[Table(named, truncated=cut)], charts=[Chart(title, chart)] if chart else [])


def _reporting(
    kinds: tuple[str, ...], chart_title: str, cells: Mapping[str, Callable[[Record, Any], Any]], by: str
) -> Gather:
    """Make a source of records: the cells of each, and the column whose values are counted in the chart."""
    columns = ("Id", "Time", *cells)

    async def gather(call: RoutedCall, scope: ReportScope) -> Report | str:
        records, cut = await _own_records(call, kinds, scope)
        rows: list[tuple[Cell, ...]] = []
        for record in records:
            content = record.content()
            values = (as_cell(cell(record, content)) for cell in cells.values())
            rows.append((record.record_id, write_instant(record.created), *values))
        at = columns.index(by)
        return _table(columns, rows, cut, chart_title, sum_by((str(row[at]), 1) for row in rows))

    return gather


async def _purchases(call: RoutedCall, scope: ReportScope) -> Report | str:
    records, cut = await _own_records(call, (PURCHASE,), scope)
    rows: list[tuple[Cell, ...]] = []
    spent: list[tuple[str, float]] = []
    for record in records:
        bought = decode_purchase(record.data)
        refund = Money(bought.refund or 0, bought.money.currency)
        amounts = (str(bought.money.amount), bought.money.currency, str(refund.amount))
        about = (record.record_id, write_instant(record.created), record.state, as_cell(bought.item))
        rows.append((*about, as_cell(bought.principal_id), *amounts))
        spent.append((f"{record.state}, {bought.money.currency}", float(bought.money.amount)))
    columns = ("Id", "Time", "State", "Item", "Principal", "Amount", "Currency", "Refunded")
    return _table(columns, rows, cut, "Amount by state and currency", sum_by(spent))


async def _costs(call: RoutedCall, scope: ReportScope) -> Report | str:
    """Report what the caller's own calls cost: by their contracts, and by what the latest of this process took."""
    if scope != ReportScope():
        return "must be all: costs are those of the latest calls"
    rows: list[tuple[Cell, ...]] = []
    for key, endpoint in sorted(call.routes.endpoints.items()):
        seconds = call.server.part("costs").find_own(key, call.agent_id or "") if endpoint.is_listed else []
        if seconds:
            cost = endpoint.cost.amounts if endpoint.cost else {}
            declared = ", ".join(f"{amount} {unit}" for unit, amount in cost.items())
            rows.append((*key, declared, len(seconds), round(median(seconds), 6)))
    columns = ("Method", "Path", "Declared", "Calls", "Seconds")
    chart = sum_by((f"{row[0]} {row[1]}", row[4]) for row in rows if isinstance(row[4], float))
    return _table(columns, rows[:MOST_ROWS], len(rows) > MOST_ROWS, "Median seconds of a call", chart)


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
    columns = tuple(dict.fromkeys(name for row in page["rows"] for name in row))
    rows = tuple(tuple(as_cell(row.get(name)) for name in columns) for row in page["rows"])
    title, numbers = _numbers(columns, rows)
    return _table(columns, rows, "next_cursor" in page, title, numbers)


def _numbers(columns: tuple[str, ...], rows: tuple[tuple[Cell, ...], ...]) -> tuple[str, dict[str, float]]:
    """Sum the first column of amounts by the first column of texts, if there are both."""

    def kinds(index: int) -> set[type]:
        return {type(row[index]) for row in rows if row[index] is not None}

    places = range(len(columns))
    label = next((at for at in places if kinds(at) == {str}), None)
    amount = next((at for at in places if columns[at] != "id" and kinds(at) and kinds(at) <= {int, float}), None)
    if label is None or amount is None:
        return "", {}
    pairs = ((str(row[label] or "none"), row[amount]) for row in rows)
    sums = sum_by((name, number) for name, number in pairs if isinstance(number, (int, float)))
    return f"{columns[amount]} by {columns[label]}", sums


SOURCES: Final[Mapping[str, Gather]] = {  # the reports of every server, by type
    "workflows": _reporting(
        (WORKFLOW,),
        "Workflows by state",
        {
            "State": lambda record, _: record.state,
            "Method": lambda _, content: content["method"],
            "Steps": lambda _, content: len(content["steps"]),
            "Changed": lambda record, _: write_instant(record.updated),
        },
        "State",
    ),
    "purchases": _purchases,
    "messages": _reporting(
        _SENT,
        "Messages by kind",
        {
            "Kind": lambda record, _: record.kind,
            "State": lambda record, _: record.state,
            "Recipients": lambda _, content: ", ".join(content.get("recipients", ())) or content.get("recipient"),
            "Changed": lambda record, _: write_instant(record.updated),
        },
        "Kind",
    ),
    "log": _reporting(
        ("log",),
        "Events by severity",
        {
            "Event": lambda _, content: content["event_type"],
            "Severity": lambda _, content: content["severity"],
            "Correlation": lambda _, content: content.get("correlation_id"),
            "Data": lambda _, content: content["data"],
        },
        "Severity",
    ),
    "costs": _costs,
    "data": _data,
}
