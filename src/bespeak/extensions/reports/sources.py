"""Sources of reports: what a caller has recorded here, and the data sets that it may read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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


def _table(rows: list[dict[str, Cell]], cut: bool, title: str, chart: dict[str, float]) -> Report:
    return Report(tables=[Table(rows, truncated=cut)], charts=[Chart(title, chart)] if chart else [])


def _reporting(
    kinds: tuple[str, ...], chart_title: str, cells: Mapping[str, Callable[[Record, Any], Any]], by: str
) -> Gather:
    """Make a source of records: the cells of each, and the column whose values are counted in the chart."""

    async def gather(call: RoutedCall, scope: ReportScope) -> Report | str:
        records, cut = await _own_records(call, kinds, scope)
        rows: list[dict[str, Cell]] = []
        for record in records:
            content = record.content()
            values = {name: as_cell(cell(record, content)) for name, cell in cells.items()}
            rows.append({"Id": record.record_id, "Time": write_instant(record.created), **values})
        return _table(rows, cut, chart_title, sum_by((str(row[by]), 1) for row in rows))

    return gather


async def _purchases(call: RoutedCall, scope: ReportScope) -> Report | str:
    records, cut = await _own_records(call, (PURCHASE,), scope)
    rows: list[dict[str, Cell]] = []
    spent: list[tuple[str, float]] = []
    for record in records:
        bought = decode_purchase(record.data)
        row: dict[str, Cell] = {
            "Id": record.record_id,
            "Time": write_instant(record.created),
            "State": record.state,
            "Item": as_cell(bought.item),
            "Principal": as_cell(bought.principal_id),
            "Amount": str(bought.money.amount),
            "Currency": bought.money.currency,
            "Refunded": str(Money(bought.refund or 0, bought.money.currency).amount),
        }
        rows.append(row)
        spent.append((f"{record.state}, {bought.money.currency}", float(bought.money.amount)))
    return _table(rows, cut, "Amount by state and currency", sum_by(spent))


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
