"""Data sets: classes of a data manifest with the source of their rows (AGIS 8.3). Only the class is ever published."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, Final

from bespeak.contract.service import DataClass, DataManifest
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.settings import setting
from bespeak.text.reading.table import Table

FORMATS: Final = ("json", "csv", "geojson")  # formats in which rows can be had
SUFFIXES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")  # files that can be a source
COLUMN_TYPES: Final = ("string", "integer", "number", "boolean", "date", "date-time", "array", "object")
"""Short names of column types; `date` and `date-time` are strings with that format."""
_OPEN: Final = frozenset({"informational", "low"})  # sensitivities that need no authorization by default
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SOURCES: Final = ("function", "file", "table", "query")


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column: its name and the JSON Schema of its values."""

    name: str
    schema: Mapping[str, Any]
    nullable: bool = True  # False if every row has a value
    native: str = ""  # type in the words of the source, such as `bigint`; empty if unknown

    @property
    def kind(self) -> str:
        """One of COLUMN_TYPES; a column of kind `array` or `object` can be read but not compared."""
        kind, form = self.plain.get("type"), self.schema.get("format")
        if kind == "string":
            return form if form in ("date", "date-time") else "string"
        return kind if kind in COLUMN_TYPES else "object"

    @property
    def takes_null(self) -> bool:
        """True if the schema says that a row may have no value."""
        return isinstance(kind := self.schema.get("type"), list) and "null" in kind

    @property
    def plain(self) -> Mapping[str, Any]:
        """Schema of the values that there are."""
        kinds = [kind for kind in self.schema["type"] if kind != "null"] if self.takes_null else []
        return {**self.schema, "type": kinds[0]} if kinds else self.schema

    @property
    def is_comparable(self) -> bool:
        return self.kind not in ("array", "object")


def read_column(name: str, declared: Any) -> DataColumn | None:
    """Read a declared column: one of COLUMN_TYPES, or the JSON Schema of its values; None if it is neither."""
    if isinstance(declared, str) and declared in COLUMN_TYPES:
        dated = declared.startswith("date")
        return DataColumn(name, {"type": "string", "format": declared} if dated else {"type": declared})
    if not isinstance(declared, Mapping):
        return None
    kinds = declared.get("type")
    values = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else [kinds]
    short = read_column(name, values[0]) if len(values) == 1 and isinstance(values[0], str) else None
    if short is None:
        return None
    column = replace(short, schema={**declared, **short.schema})
    return with_null(column) if isinstance(kinds, list) and "null" in kinds else column


def with_null(column: DataColumn) -> DataColumn:
    """Return the column as one whose rows may have no value."""
    if column.takes_null or "type" not in column.schema:
        return column
    return replace(column, schema={**column.schema, "type": [column.schema["type"], "null"]})


def _read_columns(table: Table, key: str) -> tuple[DataColumn, ...]:
    table.check_json(key)
    block = table.table(key)
    columns = [(name, read_column(name, block.value(name))) for name in block.data] if block else []
    for name, column in columns:
        if column is None and block is not None:
            message = f"the column `{name}` must have one of the types {', '.join(COLUMN_TYPES)}"
            advice = f'Write {name} = "string", or {name} = {{ type = "string", description = "..." }}.'
            block.findings.error(WRONG_VALUE, message, block.pointer(name), advice)
    return tuple(column for _, column in columns if column is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet(DataClass):
    """A class of data with the source of its rows; agents may negotiate endpoints over it."""

    scopes: tuple[str, ...] = setting(
        (), "The scopes that reading it takes. Without it: `data:CLASS` if the class needs authorization."
    )
    function: str = setting("", "The dotted path of a function that returns the rows.")
    target: Callable[..., Any] | None = None
    """The function itself, if the contract is written in Python."""
    file: str | PathLike[str] | None = setting(
        None, f"A file with the rows: {', '.join(SUFFIXES)}. Needs the extra `data`."
    )
    """Relative to the folder of the configuration or of the app, like `database`."""
    database: str = setting(
        "", "The database of `table` or `query`: an SQLite file, or `postgresql://...`; `${VAR}` is a variable."
    )
    table: str = setting("", "The table or view with the rows; `schema.table` in PostgreSQL.")
    query: str = setting("", "A SELECT that gives the rows.")
    columns: tuple[DataColumn, ...] = setting(
        (),
        f"Column = its type ({', '.join(COLUMN_TYPES)}) or its JSON Schema. Only these are read. Without it, the "
        "columns are taken from the source when the server starts.",
        kind="map",
        read=_read_columns,
    )
    key: tuple[str, ...] = setting(
        (), "The columns that identify a row, for stable pages. Without it: the primary key, else all columns."
    )
    geometry: tuple[str, ...] = setting(
        (), "For geojson: a column with GeoJSON geometries, or the columns of longitude and latitude."
    )
    max_rows: int = setting(1000, "The most rows of one page.", bounds=(1, 10_000), security=True)
    timeout: float = setting(10.0, "Seconds that reading may take.", kind="seconds", bounds=(0.1, 300), security=True)

    @property
    def needs_authorization(self) -> bool:
        """True if an agent must be authorized before it can negotiate about the class."""
        if self.requires_authorization is not None:
            return self.requires_authorization
        return self.sensitivity not in _OPEN

    @property
    def required_scopes(self) -> tuple[str, ...]:
        """Scopes of the endpoint that reads the class."""
        return self.scopes or ((f"data:{self.name}",) if self.needs_authorization else ())

    def faults(self) -> list[str]:
        """List what is wrong with the declaration, in sentences."""
        named = [name for name in _SOURCES if getattr(self, name)]
        kinds = ["function"] if self.target is not None and not named else named
        found = []
        if _NAME.fullmatch(self.name) is None:
            found.append(f"the class must be lower-case words joined by hyphens; got {brief(self.name)}")
        if len(kinds) != 1:
            has = f"has {' and '.join(kinds)}" if kinds else "has no source"
            found.append(f"it needs exactly one of {', '.join(_SOURCES)}; it {has}")
        if bool(self.database) != bool(self.table or self.query):
            found.append("`database` and one of `table` and `query` belong together")
        if self.file is not None and not str(self.file).lower().endswith(SUFFIXES):
            found.append(f"`file` must end in one of {', '.join(SUFFIXES)}; got {brief(str(self.file))}")
        other = [form for form in self.formats if form not in FORMATS]
        if other:
            found.append(f"`formats` can be {', '.join(FORMATS)}; got {', '.join(map(brief, other))}")
        if len(self.geometry) > 2:
            found.append("`geometry` must be one column, or longitude and latitude")
        return found


def bind_sources(
    manifest: DataManifest | None, sets: Sequence[DataSet], *, closed: bool = False
) -> tuple[DataManifest | None, list[tuple[int, str]]]:
    """Join data sets with the manifest, which may be `closed`; report faults by the number of the set."""
    faults: list[tuple[int, str]] = []
    entries = {entry.name: entry for entry in (manifest.available_data if manifest else ())}
    bound: dict[str, DataSet] = {}
    for number, given in enumerate(sets):
        known = entries.get(given.name)
        again = [one.name for one in fields(DataClass) if one.name != "name" and getattr(given, one.name)]
        if given.name in bound:
            faults.append((number, f"the class {brief(given.name)} is listed twice"))
        elif known is None and closed:
            faults.append((number, f"the class {brief(given.name)} is not in the data_manifest of the document"))
        elif known is not None and again:
            faults.append((number, f"{', '.join(again)} of {brief(given.name)} are already in the data_manifest"))
        else:
            bound[given.name] = full = given if known is None else replace(given, **_public(known))
            faults += [(number, f"{brief(given.name)}: {fault}") for fault in full.faults()]
    if not bound:
        return manifest, faults
    return replace(manifest or DataManifest(), available_data=tuple((entries | bound).values())), faults


def join_manifests(one: DataManifest | None, other: DataManifest | None) -> DataManifest | None:
    """Join two manifests. The first one decides about a class in both, unless only the other has its source."""
    if one is None or other is None:
        return one or other
    entries = {entry.name: entry for entry in other.available_data}
    for entry in one.available_data:
        known = entries.get(entry.name)
        bound = isinstance(known, DataSet) and not isinstance(entry, DataSet)
        entries[entry.name] = replace(known, **_public(entry)) if bound and known is not None else entry
    names = dict.fromkeys(entry.name for entry in (*one.available_data, *other.available_data))
    return replace(one, available_data=tuple(entries[name] for name in names))


def _public(entry: DataClass) -> dict[str, Any]:
    return {one.name: getattr(entry, one.name) for one in fields(DataClass)}


def data_sets(manifest: DataManifest | None) -> Iterable[DataSet]:
    return [entry for entry in (manifest.available_data if manifest else ()) if isinstance(entry, DataSet)]
