"""One small ledger in every kind of source, so that all of them can be held to the same answers."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bespeak.contract.data_set import DataColumn, DataSet, read_column
from bespeak.contract.service import DataManifest
from bespeak.extensions.data.endpoints import OpenedData, open_data
from bespeak.extensions.data.query import DataQuery

KINDS = ("function", "async", "sqlite", "csv", "jsonl", "parquet", "postgres")
TYPES = {
    "id": "integer",
    "account": "string",
    "amount": "number",
    "booked": "date",
    "changed_at": "date-time",
    "memo": "string",
    "pending": "boolean",
}
COLUMNS = tuple(column for name, kind in TYPES.items() if (column := read_column(name, kind)) is not None)
ROWS: list[dict[str, Any]] = [
    dict(zip(TYPES, values, strict=True))
    for values in (
        (1, "a-1", 10.5, "2026-01-01", "2026-01-01T08:00:00Z", "Rent", False),
        (2, "a-1", -3.0, "2026-01-02", "2026-01-02T09:30:00Z", None, True),
        (3, "b-2", None, "2026-01-02", "2026-01-02T10:00:00Z", "Ärger'; DROP TABLE ledger; --", False),
        (4, "a-1", 10.5, "2026-01-03", "2026-01-03T08:00:00.250000Z", "rent, again", False),
        (5, "c-3", 0.1, "2026-02-01", "2026-02-01T08:00:00Z", '"quoted"\nlines', None),
        (6, "a-1", 99999999.25, "2026-02-03", "2026-02-03T00:00:00Z", "100% _ \\", False),
    )
]


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the columns that have no value."""
    return {name: value for name, value in row.items() if value is not None}


def data_set(kind: str, folder: Path, dsn: str = "", **more: Any) -> DataSet:
    """Make the ledger as a data set, in a new file, a database or a function."""
    rows: list[dict[str, Any]] = more.pop("rows", ROWS)
    asked: list[DataQuery] = more.pop("asked", [])
    settings: dict[str, Any] = {"name": "ledger", "sensitivity": "low", "key": ("id",)}
    if kind in ("function", "async"):

        def read(query: DataQuery) -> Iterator[dict[str, Any]]:
            asked.append(query)
            yield from rows

        async def read_later(query: DataQuery) -> list[dict[str, Any]]:
            await asyncio.sleep(0)
            return list(read(query))

        settings |= {"target": read if kind == "function" else read_later, "columns": COLUMNS}
    elif kind == "sqlite":
        settings |= {"database": str(fill_sqlite(folder / "ledger.db", rows)), "table": "ledger"}
    elif kind == "postgres":
        with ThreadPoolExecutor(1) as thread:  # a loop may be running in this one
            thread.submit(asyncio.run, fill_postgres(dsn, rows)).result()
        settings |= {"database": dsn, "table": "ledger"}
    else:
        settings |= {"file": write_file(folder / f"ledger.{kind}", rows)}
    return DataSet(**(settings | more))


def opened(data: DataSet, base: Path | None = None, at: int = 0) -> OpenedData:
    """Open a data set that has nothing wrong with it; return its format number `at`."""
    made, findings = open_data(DataManifest(available_data=(data,)), base or Path(), {})
    assert not findings, findings[0].message
    return made[at]


def reader(one: OpenedData) -> Callable[..., Awaitable[Any]]:
    """Return the handler of an opened data set, taking its input by name: it gives a page or a Refused."""
    target = one.endpoint.handler.target  # type: ignore[union-attr] # it is a RegisteredFunction
    assert target is not None
    return lambda **values: target(values)


def fill_sqlite(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE ledger (id INTEGER PRIMARY KEY, account TEXT NOT NULL, amount REAL, booked DATE, "
        "changed_at TIMESTAMP, memo VARCHAR(100), pending BOOLEAN)"
    )
    # The form in which SQLite itself writes times.
    times = [row["changed_at"].replace("T", " ").rstrip("Z") for row in rows]
    values = [tuple({**row, "changed_at": at}.values()) for row, at in zip(rows, times, strict=True)]
    connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    connection.commit()
    connection.close()
    return path


async def fill_postgres(dsn: str, rows: list[dict[str, Any]]) -> None:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    await connection.execute("DROP TABLE IF EXISTS ledger")
    await connection.execute(
        "CREATE TABLE ledger (id int PRIMARY KEY, account text NOT NULL, amount numeric(20, 2), booked date, "
        "changed_at timestamptz, memo varchar(100), pending boolean)"
    )
    await connection.execute(
        "INSERT INTO ledger SELECT * FROM json_populate_recordset(null::ledger, $1::text::json)", json.dumps(rows)
    )
    await connection.close()


def write_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(TYPES))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import duckdb

        source = write_file(path.with_suffix(".jsonl"), rows)
        duckdb.sql(f"COPY (SELECT * FROM read_json('{source}')) TO '{path}' (FORMAT parquet)")
    return path


def column(name: str) -> DataColumn:
    """Return a column of the ledger."""
    return next(one for one in COLUMNS if one.name == name)
