"""The handler of a data set: from the input of a call to a page of rows."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.errors import DataSourceError
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.data.cursor import read_cursor, write_cursor
from bespeak.runtime.data.endpoint import DEFAULT_LIMIT, FIELDS, filter_inputs
from bespeak.runtime.data.query import DataFilter, DataQuery
from bespeak.runtime.data.source import Source
from bespeak.runtime.data.value import instant, to_json, to_position
from bespeak.runtime.threads import run_in_thread

_logger = logging.getLogger(__name__)

_AT_ONCE: Final = 4
"""Reads of one data set at the same time; others wait, within their time."""
_RETRY_SECONDS: Final = 5

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a data set and its source say together."""

    columns: Mapping[str, DataColumn]
    key: tuple[str, ...]
    """Columns that identify a row; empty if none do."""
    geometry: tuple[str, ...] = ()


class DataReader:
    """Reads pages. The layout of a source that could not be read at the start is found by the first call."""

    def __init__(self, data: DataSet, source: Source, lay_out: Callable[[], Layout], layout: Layout | None) -> None:
        """Create the reader; `lay_out` describes the source again, and blocks."""
        self._data = data
        self._source = source
        self._lay_out = lay_out
        self._layout = layout
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def read(self, form: str, values: Mapping[str, Any], _: Any = None) -> dict[str, Any] | Refused:
        """Return a page in a format, or why there is none. What is wrong with a source is only logged."""
        try:
            async with asyncio.timeout(self._data.timeout):
                if self._layout is None:
                    self._layout = await run_in_thread(self._lay_out)
                query = self._query(form, values, self._layout)
                if isinstance(query, Refused):
                    return query
                async with self._slots:
                    rows = await self._source.read(replace(query, limit=query.limit + 1), self._layout.columns)
            return self._page(form, values, self._layout, query, rows)
        except TimeoutError:
            reason = f"it was not read within {self._data.timeout:g} s"
        except DataSourceError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - the function of an operator may fail in any way
            reason = f"{type(error).__name__}: {error}"
        _logger.error("the data class %s is not available: %s", self._data.name, reason)
        message = f"The data class {self._data.name} cannot be read at the moment; try again later."
        headers = (("Retry-After", str(_RETRY_SECONDS)),)
        return Refused(status.UNAVAILABLE, "data-unavailable", message, {"data_class": self._data.name}, headers)

    def _query(self, form: str, values: Mapping[str, Any], layout: Layout) -> DataQuery | Refused:
        columns, filters = layout.columns, []
        for name, (column, op) in filter_inputs(columns.values()).items():
            if name in values:
                wanted = values[name]
                if not all(map(_is_storable, wanted if op == "in" else [wanted])):
                    message = f"{name} has characters that no text of a database can have."
                    return Refused(status.UNPROCESSABLE, "invalid-filter", message)
                if column.kind == "date-time" and not _is_instant(wanted):
                    message = f"{name} must be a time in ISO 8601; got {wanted!r:.60}."
                    return Refused(status.UNPROCESSABLE, "invalid-filter", message)
                filters.append(DataFilter(column.name, op, wanted))
        asked = values.get("order")
        order = [] if asked is None else [(asked.removeprefix("-"), asked.startswith("-"))]
        rest = layout.key or tuple(name for name, column in columns.items() if column.is_comparable)
        order += [(name, False) for name in rest if not order or name != order[0][0]]
        shown = dict.fromkeys((*values.get("fields", columns), *(name for name, _ in order)))
        if form == "geojson":
            shown |= dict.fromkeys(layout.geometry)
        query = DataQuery(
            limit=values.get(
                "limit", self._data.max_rows if form != "json" else min(DEFAULT_LIMIT, self._data.max_rows)
            ),
            columns=tuple(shown),
            filters=tuple(filters),
            order=tuple(order),
            skip=None if layout.key else 0,
        )
        cursor = values.get("cursor")
        if cursor is None:
            return query
        position = read_cursor(cursor, query, [columns[name] for name, _ in order])
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
        shown = [_shown(row, [layout.columns[name] for name in names]) for row in rows]
        if form == "csv":
            content: Any = _write_csv(names, shown)
        else:
            content = _features(shown, layout.geometry) if form == "geojson" else shown
        page = {FIELDS[form]: content}
        if len(found) > query.limit:
            page["next_cursor"] = _next_cursor(rows, layout, query)
        return page


def _shown(row: Row, columns: Sequence[DataColumn]) -> dict[str, Any]:
    values = ((column, to_json(column, row.get(column.name))) for column in columns)
    return {column.name: value for column, value in values if value is not None or column.takes_null}


def _next_cursor(rows: Sequence[Row], layout: Layout, query: DataQuery) -> str:
    ordered = [layout.columns[name] for name, _ in query.order]
    positions = [[to_position(column, row.get(column.name)) for column in ordered] for row in rows]
    skip = None
    if query.skip is not None:
        skip = len(positions) - positions.index(positions[-1])
        if skip == len(positions) and query.after is not None and positions[-1] == list(query.after):
            skip += query.skip
    return write_cursor(replace(query, after=None, skip=None), positions[-1], skip)


def _write_csv(names: Sequence[str], rows: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _features(rows: Sequence[dict[str, Any]], geometry: tuple[str, ...]) -> dict[str, Any]:
    features = []
    for row in rows:
        places = [row.pop(name, None) for name in geometry]
        point = {"type": "Point", "coordinates": places} if None not in places else None
        features.append({"type": "Feature", "geometry": places[0] if len(geometry) == 1 else point, "properties": row})
    return {"type": "FeatureCollection", "features": features}


def _is_storable(value: Any) -> bool:
    if not isinstance(value, str):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _is_instant(value: str) -> bool:
    try:
        instant(value)
    except ValueError:
        return False
    return True
