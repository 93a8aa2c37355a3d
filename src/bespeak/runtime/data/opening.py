"""From a data manifest to endpoints: each source is looked at once, before the server runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.data_set import DataColumn, DataSet, with_null
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.rules import DATA_SET, NO_EFFECT
from bespeak.errors import DataSourceError
from bespeak.runtime.bindings.function import resolve_function
from bespeak.runtime.data.endpoint import make_endpoint
from bespeak.runtime.data.file_source import FileSource
from bespeak.runtime.data.function_source import FunctionSource
from bespeak.runtime.data.reader import DataReader, Layout
from bespeak.runtime.data.source import Source
from bespeak.runtime.data.sqlite_source import SqliteSource
from bespeak.state.store.settings import POSTGRES, MissingVariable, StoreSettings
from bespeak.text.diagnostics.diagnostic import Diagnostic

_MOST_COLUMNS: Final = 200
_PLACES: Final = (("geometry",), ("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"))
"""Columns that are taken for the geometry if none are named."""


@dataclass(frozen=True, slots=True)
class OpenedData:
    """A data set that can be read, in one format."""

    endpoint: Endpoint
    source: Source


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

    def lay_out() -> Layout:
        return _lay_out(data, source)

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
    return [OpenedData(make_endpoint(data, columns, partial(reader.read, form), form), source) for form in formats]


def _source(data: DataSet, base: Path, environment: Mapping[str, str]) -> Source:
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
    from bespeak.runtime.data.postgres_source import PostgresSource  # noqa: PLC0415 - most servers need none
    from bespeak.state.store.postgres_address import Address  # noqa: PLC0415 - loads the driver

    name = Address(place, "full").name
    return PostgresSource(place, name, timeout=data.timeout, table=data.table, query=data.query)


def _lay_out(data: DataSet, source: Source) -> Layout:
    """Combine what is declared with what the source says. Raises DataSourceError if they do not fit."""
    described = source.describe()
    own = {column.name: column for column in described.columns}
    missing = [column.name for column in data.columns if column.name not in own]
    if missing:
        raise DataSourceError(f"the source has no column {missing[0]!r}; it has {', '.join(own) or 'none'}")
    columns = {column.name: _merge(column, own[column.name]) for column in data.columns or described.columns}
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


def _merge(declared: DataColumn, described: DataColumn) -> DataColumn:
    column = replace(declared, nullable=described.nullable, native=described.native)
    # A function does not say whether values may be missing; its declaration does.
    return with_null(column) if described.nullable and described.native else column


def _geometry(data: DataSet, columns: Mapping[str, DataColumn]) -> tuple[str, ...]:
    if "geojson" not in data.formats:
        return ()
    choices = (data.geometry,) if data.geometry else _PLACES
    found = next((names for names in choices if all(name in columns for name in names)), None)
    if found is None:
        raise DataSourceError("geojson needs `geometry`: a column of geometries, or those of longitude and latitude")
    return found
