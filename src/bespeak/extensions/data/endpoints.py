"""Endpoints of data sets, one for each format, from a data manifest; and the handler that reads their pages."""

from __future__ import annotations

import asyncio
import csv
import inspect
import io
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from bespeak.contract.data_set import DataColumn, DataSet, with_null
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.service import DataManifest
from bespeak.documents.rules import DATA_SET, NO_EFFECT
from bespeak.errors import DataSourceError
from bespeak.extensions.data import query as queries
from bespeak.extensions.data.query import DataFilter, DataQuery
from bespeak.extensions.data.sources import DataSource, FileSource, FunctionSource, SqliteSource
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.function import resolve_function
from bespeak.runtime.concurrency import run_in_thread
from bespeak.state.store.settings import POSTGRES, MissingVariable, StoreSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic

DEFAULT_LIMIT: Final = 100  # rows of a page unless the caller asks otherwise
_MOST_VALUES: Final = 100  # values of an `_in` filter
_LONGEST_PART: Final = 1000  # characters of a `_contains` filter
FIELDS: Final = {"json": "rows", "csv": "csv", "geojson": "geojson"}  # output field of each format
_CONTROLS: Final = ("fields", "order", "limit", "cursor", "format")
_SUFFIXES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "string": (("_contains", "contains"), ("_in", "in")),
    "integer": (("_min", "min"), ("_max", "max"), ("_in", "in")),
    "number": (("_min", "min"), ("_max", "max")),
    "boolean": (),
    "date": (("_from", "min"), ("_to", "max")),
    "date-time": (("_from", "min"), ("_to", "max")),
}


def filter_inputs(columns: Iterable[DataColumn]) -> dict[str, tuple[DataColumn, str]]:
    """Return column and operator of each filter. Controls go before columns, and columns before names with a suffix."""
    known = [column for column in columns if column.is_comparable]
    found = {column.name: (column, "eq") for column in known if column.name not in _CONTROLS}
    for column in known:
        for suffix, op in _SUFFIXES[column.kind]:
            found.setdefault(column.name + suffix, (column, op))
    return found


def make_endpoint(data: DataSet, columns: Sequence[DataColumn], target: Callable[..., Any], form: str) -> Endpoint:
    what = data.description.rstrip(".") or data.name
    return Endpoint(
        method="QUERY",
        path=f"/data/{data.name}" + ("" if form == "json" else f"/{form}"),
        description=f"{what}.",
        semantic=Semantic(
            intent=f"Read rows of the data class {data.name}: {what}.",
            actor="agent",
            outcome="The rows that meet all filters are returned.",
            capability="retrieval",
            confidence=1.0,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": {
                **{name: _filter(*one) for name, one in filter_inputs(columns).items()},
                **_controls(data, columns, form),
            },
            "additionalProperties": False,
        },
        output_schema=_output(columns, form),
        handler=RegisteredFunction(function=f"data.{data.name}.{form}", target=target),
        required_scopes=data.required_scopes,
        data_class=data.name,
    )


def _filter(column: DataColumn, op: str) -> dict[str, Any]:
    if op == "contains":
        return {"type": "string", "maxLength": _LONGEST_PART}
    if op == "in":
        return {"type": "array", "items": dict(column.plain), "minItems": 1, "maxItems": _MOST_VALUES}
    return dict(column.plain)


def _controls(data: DataSet, columns: Sequence[DataColumn], form: str) -> dict[str, Any]:
    names = [column.name for column in columns]
    sortable = [sign + column.name for column in columns if column.is_comparable for sign in ("", "-")]
    most = {"default": min(DEFAULT_LIMIT, data.max_rows)} if form == "json" else {}
    return {
        "fields": {
            "type": "array",
            "items": {"enum": names},
            "minItems": 1,
            "maxItems": len(names),
            "description": "The columns to return; without it, all.",
        },
        "order": {"type": "string", "enum": sortable, "description": "The column to sort by; `-` for descending."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": data.max_rows,
            **most,
            "description": "The most rows of a page." + ("" if most else " Without it, all rows must fit in one."),
        },
        "cursor": {
            "type": "string",
            "maxLength": queries.LONGEST_CURSOR,
            "description": "The `next_cursor` of the page before, with the same filters and order.",
        },
        "format": {"type": "string", "enum": [form]},
    }


def _output(columns: Sequence[DataColumn], form: str) -> dict[str, Any]:
    row = {"type": "object", "properties": {column.name: dict(column.schema) for column in columns}}
    forms: dict[str, Any] = {
        "json": {"type": "array", "items": row, "description": "The rows."},
        "csv": {"type": "string", "description": "The rows as CSV (RFC 4180), with a line of names."},
        "geojson": {"type": "object", "description": "The rows as a FeatureCollection (RFC 7946)."},
    }
    cursor = {"type": "string", "description": "The cursor of the next page; not there on the last one."}
    properties = {FIELDS[form]: forms[form], "next_cursor": cursor}
    return {"type": "object", "properties": properties, "required": [FIELDS[form]]}


_logger = logging.getLogger(__name__)

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")  # what no text of a database can have
_AT_ONCE: Final = 4  # reads of one data set at the same time; others wait, within their time
_RETRY_SECONDS: Final = 5

Row = Mapping[str, Any]
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Layout:
    """What a data set and its source say together."""

    columns: Mapping[str, DataColumn]
    key: tuple[str, ...]  # columns that identify a row; empty if none do
    geometry: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """Columns that order the rows completely, as far as any do."""
        return self.key or tuple(name for name, column in self.columns.items() if column.is_comparable)


class DataReader:
    """Reads pages. The layout of a source that could not be read at the start is found by the first call."""

    def __init__(self, data: DataSet, source: DataSource, lay_out: Callable[[], Layout], layout: Layout | None) -> None:
        """Create the reader; `lay_out` describes the source again, and blocks."""
        self.data = data
        self.source = source
        self._lay_out = lay_out
        self._layout = layout
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def read(self, form: str, values: Mapping[str, Any], _: Any = None) -> dict[str, Any] | Refused:
        """Return a page in a format, or why there is none."""

        async def read_page() -> dict[str, Any] | Refused:
            layout = await self._find_layout()
            query = self._query(form, values, layout)
            if isinstance(query, Refused):
                return query
            return self._page(form, values, layout, query, await self._select(replace(query, limit=query.limit + 1)))

        return await self._guard(read_page())

    async def layout(self) -> Layout | Refused:
        """Return columns and key, or why they are not known."""
        return await self._guard(self._find_layout(), status.TIMEOUT)

    async def scan(
        self, after: Sequence[Any] | None, limit: int, filters: Sequence[DataFilter]
    ) -> tuple[list[Row], tuple[Any, ...] | None] | Refused:
        """Return rows behind a position in the order of the key, and the position behind them; None at the end.

        Where no key is known, the number of rows to skip at a position is the last of its values.
        """

        async def scan_rows() -> tuple[list[Row], tuple[Any, ...] | None]:
            layout = await self._find_layout()
            names = layout.order
            if after is not None and len(after) != len(names) + (not layout.key):
                raise DataSourceError("the columns have changed since the scan began")
            at = None if after is None else tuple(after[: len(names)])
            query = DataQuery(
                limit=limit + 1,
                columns=tuple(layout.columns),
                filters=tuple(filters),
                order=tuple((name, False) for name in names),
                after=None
                if at is None
                else tuple(map(queries.from_position, [layout.columns[name] for name in names], at)),
                skip=None if layout.key else int(after[-1]) if after is not None else 0,
            )
            found = await self._select(query)
            rows = found[:limit]
            shown: list[Row] = [_show(row, layout.columns.values()) for row in rows]
            if len(found) <= limit:
                return shown, None
            positions, skip = _positions(rows, layout, query)
            return shown, (*positions, *(() if skip is None else (skip,)))

        return await self._guard(scan_rows(), status.TIMEOUT)

    async def search(self, query: DataQuery) -> list[Row] | Refused:
        """Return the rows that a query selects, whose order is completed so that pages of it do not overlap."""

        async def search_rows() -> list[Row]:
            layout = await self._find_layout()
            asked = dict(query.order)
            order = (*query.order, *((name, False) for name in layout.order if name not in asked))
            found = await self._select(replace(query, order=order, columns=tuple(layout.columns)))
            return [_show(row, layout.columns.values()) for row in found]

        return await self._guard(search_rows(), status.TIMEOUT)

    async def _find_layout(self) -> Layout:
        if self._layout is None:
            self._layout = await run_in_thread(self._lay_out)
        return self._layout

    async def _select(self, query: DataQuery) -> list[Row]:
        layout = await self._find_layout()
        async with self._slots:
            return await self.source.read(query, layout.columns)

    async def _guard(self, reading: Awaitable[_Read], late: int = status.UNAVAILABLE) -> _Read | Refused:
        """Return what is read within the time of the data set, or a refusal. What is wrong with it is only logged."""
        number, code = status.UNAVAILABLE, "data-unavailable"
        try:
            async with asyncio.timeout(self.data.timeout):
                return await reading
        except TimeoutError:
            reason, number = f"it was not read within {self.data.timeout:g} s", late
            code = "data-timeout" if late == status.TIMEOUT else code
        except DataSourceError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - the function of an operator may fail in any way
            reason = f"{type(error).__name__}: {error}"
        _logger.error("the data class %s is not available: %s", self.data.name, reason)
        message = f"The data class {self.data.name} cannot be read at the moment; try again later."
        headers = (("Retry-After", str(_RETRY_SECONDS)),)
        return Refused(number, code, message, {"data_class": self.data.name}, headers)

    def _query(self, form: str, values: Mapping[str, Any], layout: Layout) -> DataQuery | Refused:
        columns, filters = layout.columns, []
        for name, (column, op) in filter_inputs(columns.values()).items():
            if name in values:
                wanted, wrong = values[name], ""
                texts = [one for one in (wanted if op == "in" else [wanted]) if isinstance(one, str)]
                if any(map(_UNSTORABLE.search, texts)):
                    wrong = f"{name} has characters that no text of a database can have."
                elif column.kind == "date-time" and not _is_instant(wanted):
                    wrong = f"{name} must be a time in ISO 8601; got {wanted!r:.60}."
                if wrong:
                    return Refused(status.UNPROCESSABLE, "invalid-filter", wrong)
                filters.append(DataFilter(column.name, op, wanted))
        asked = values.get("order")
        order = [] if asked is None else [(asked.removeprefix("-"), asked.startswith("-"))]
        order += [(name, False) for name in layout.order if not order or name != order[0][0]]
        shown = dict.fromkeys((*values.get("fields", columns), *(name for name, _ in order)))
        if form == "geojson":
            shown |= dict.fromkeys(layout.geometry)
        most = self.data.max_rows
        query = DataQuery(
            limit=values.get("limit", most if form != "json" else min(DEFAULT_LIMIT, most)),
            columns=tuple(shown),
            filters=tuple(filters),
            order=tuple(order),
            skip=None if layout.key else 0,
        )
        cursor = values.get("cursor")
        if cursor is None:
            return query
        position = queries.read_cursor(cursor, query, [columns[name] for name, _ in order])
        if isinstance(position, str):
            return Refused(status.UNPROCESSABLE, "invalid-cursor", f"{position[0].upper()}{position[1:]}.")
        return replace(query, after=position[0], skip=position[1])

    def _page(
        self, form: str, values: Mapping[str, Any], layout: Layout, query: DataQuery, found: Sequence[Row]
    ) -> dict[str, Any] | Refused:
        if form != "json" and "limit" not in values and len(found) > query.limit:
            # Whoever does not ask for pages takes the text for all rows.
            message = f"More than {query.limit} rows meet the filters; send a limit and a cursor, or more filters."
            return Refused(status.UNPROCESSABLE, "too-many-rows", message)
        rows = found[: query.limit]
        names = values.get("fields", tuple(layout.columns))
        if form == "geojson":
            names = tuple(dict.fromkeys((*names, *layout.geometry)))
        columns = [layout.columns[name] for name in names]
        shown = [_show(row, columns) for row in rows]
        content: Any = _write_csv(names, shown) if form == "csv" else shown
        page = {FIELDS[form]: _features(shown, layout.geometry) if form == "geojson" else content}
        if len(found) > query.limit:
            last = _positions(rows, layout, query)
            page["next_cursor"] = queries.write_cursor(replace(query, after=None, skip=None), *last)
        return page


def _show(row: Row, columns: Iterable[DataColumn]) -> dict[str, Any]:
    """Return a row of a source as an answer has it, with these columns."""
    cells = ((column, queries.to_json(column, row.get(column.name))) for column in columns)
    return {column.name: value for column, value in cells if value is not None or column.takes_null}


def _positions(rows: Sequence[Row], layout: Layout, query: DataQuery) -> tuple[list[Any], int | None]:
    """Return the position of the last row, and how many rows at it were read; None if no others can be there."""
    ordered = [layout.columns[name] for name, _ in query.order]
    positions = [[queries.to_position(column, row.get(column.name)) for column in ordered] for row in rows]
    skip = None
    if query.skip is not None:
        skip = len(positions) - positions.index(positions[-1])
        if skip == len(positions) and query.after is not None and positions[-1] == list(query.after):
            skip += query.skip
    return positions[-1], skip


def _write_csv(names: Sequence[str], rows: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    for row in rows:
        others = {name: value for name, value in row.items() if value is not None and not isinstance(value, str)}
        writer.writerow({**row, **{name: msgspec.json.encode(value).decode() for name, value in others.items()}})
    return text.getvalue()


def _features(rows: Sequence[dict[str, Any]], geometry: tuple[str, ...]) -> dict[str, Any]:
    features = []
    for row in rows:
        places = [row.pop(name, None) for name in geometry]
        point = {"type": "Point", "coordinates": places} if None not in places else None
        features.append({"type": "Feature", "geometry": places[0] if len(geometry) == 1 else point, "properties": row})
    return {"type": "FeatureCollection", "features": features}


def _is_instant(value: str) -> bool:
    try:
        queries.instant(value)
    except ValueError:
        return False
    return True


_MOST_COLUMNS: Final = 200
_PLACES: Final = (("geometry",), ("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"))  # if none are named


@dataclass(frozen=True, slots=True)
class OpenedData:
    """A data set that can be read, in one format."""

    endpoint: Endpoint
    source: DataSource
    reader: DataReader
    form: str


def open_data(
    manifest: DataManifest | None, base: Path, environment: Mapping[str, str]
) -> tuple[list[OpenedData], list[Diagnostic]]:
    """Open the sources of a manifest; report those that cannot be used. Only what it returns can be negotiated."""
    opened: list[OpenedData] = []
    findings: list[Diagnostic] = []
    for entry in manifest.available_data if manifest is not None else ():
        if not isinstance(entry, DataSet):
            message = f"the data class {entry.name!r} has no source, so no endpoint can be negotiated over it"
            findings.append(NO_EFFECT.found(message, advice=f'Write [[data]] with class = "{entry.name}".'))
            continue
        try:
            opened += _open(entry, base, environment, findings)
        except DataSourceError as error:
            advice = "No endpoint can be negotiated over it until this is corrected and the server is started again."
            findings.append(DATA_SET.found(f"the data class {entry.name!r} cannot be used: {error}", advice=advice))
    return opened, findings


def _open(data: DataSet, base: Path, environment: Mapping[str, str], findings: list[Diagnostic]) -> list[OpenedData]:
    faults = data.faults()
    if faults:
        raise DataSourceError("; ".join(faults))
    source = _source(data, base, environment)
    lay_out = partial(_lay_out, data, source)
    layout: Layout | None = None
    try:
        layout = lay_out()
    except DataSourceError as error:
        if not data.columns or not data.key:
            raise
        message = f"the data class {data.name!r} cannot be read yet: {error}"
        findings.append(DATA_SET.found(message, advice="Reads are answered with 503 until it can.", severity="warning"))
    reader = DataReader(data, source, lay_out, layout)
    columns = data.columns if layout is None else tuple(layout.columns.values())
    formats = data.formats or ("json",)
    return [
        OpenedData(make_endpoint(data, columns, partial(reader.read, form), form), source, reader, form)
        for form in dict.fromkeys(formats)
    ]


def _source(data: DataSet, base: Path, environment: Mapping[str, str]) -> DataSource:
    if data.file is not None:
        return FileSource(base / data.file)
    if not data.database:
        function = data.target or resolve_function(data.function)
        if isinstance(function, str):
            raise DataSourceError(f"the function {data.function!r} cannot be used: {function}")
        if len([one for one in inspect.signature(function).parameters.values() if one.default is one.empty]) > 1:
            raise DataSourceError("its function must take no parameter, or the query")
        return FunctionSource(function, data.columns)
    place = StoreSettings(place=data.database).located(base, environment)
    if isinstance(place, MissingVariable):
        raise DataSourceError(f"`database` needs the environment variable {place.name!r}, which is not set")
    if not place.startswith(POSTGRES):
        return SqliteSource(Path(place), table=data.table, query=data.query)
    from bespeak.extensions.data.postgres import PostgresSource  # noqa: PLC0415 - most servers need none
    from bespeak.state.store.postgres_connection import Address  # noqa: PLC0415 - loads the driver

    return PostgresSource(place, Address(place, "full").name, timeout=data.timeout, table=data.table, query=data.query)


def _lay_out(data: DataSet, source: DataSource) -> Layout:
    """Combine what is declared with what the source says. Raises DataSourceError if they do not fit."""
    described = source.describe()
    own = {column.name: column for column in described.columns}
    missing = [column.name for column in data.columns if column.name not in own]
    if missing:
        raise DataSourceError(f"the source has no column {missing[0]!r}; it has {', '.join(own) or 'none'}")
    columns: dict[str, DataColumn] = {}
    for declared in data.columns or described.columns:
        found = own[declared.name]
        column = replace(declared, nullable=found.nullable, native=found.native)
        # A function does not say whether values may be missing; its declaration does.
        columns[column.name] = with_null(column) if found.nullable and found.native else column
    unknown = [column.name for column in columns.values() if not column.schema]
    if unknown or not columns:
        what = f"the type of {', '.join(unknown)} is not known" if unknown else "its columns are not known"
        raise DataSourceError(f"{what}; declare the columns, as [data.columns] or `columns=`")
    if len(columns) > _MOST_COLUMNS:
        raise DataSourceError(f"it has {len(columns)} columns, more than {_MOST_COLUMNS}; declare those to read")
    key = data.key or (described.key if all(name in columns for name in described.key) else ())
    wrong = [name for name in key if name not in columns or not columns[name].is_comparable]
    if wrong:
        raise DataSourceError(f"`key` names {wrong[0]!r}, which is not a column that can be compared")
    return Layout(columns, key, _geometry(data, columns))


def _geometry(data: DataSet, columns: Mapping[str, DataColumn]) -> tuple[str, ...]:
    if "geojson" not in data.formats:
        return ()
    choices = (data.geometry,) if data.geometry else _PLACES
    found = next((names for names in choices if all(name in columns for name in names)), None)
    if found is None:
        raise DataSourceError("geojson needs `geometry`: a column of geometries, or those of longitude and latitude")
    return found
