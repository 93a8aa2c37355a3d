"""Sources of data: tables, files and functions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import msgspec
import pytest
from tests.cases import rows
from tests.extensions.data.ledger import COLUMNS, ROWS, TYPES, fill_sqlite, opened, reader, write_file

from bespeak.contract.data_set import DataColumn, DataSet, read_column
from bespeak.documents.table_files import quote_name
from bespeak.errors import DataSourceError
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.postgres import PostgresDialect
from bespeak.extensions.data.query import DataFilter, DataQuery
from bespeak.extensions.data.sources import (
    Dialect,
    FileSource,
    Select,
    SqliteDialect,
    SqliteSource,
    as_number,
    as_relation,
    run_interruptible,
)
from bespeak.protocol.exchange.refusal import Refused

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS x FROM n"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return fill_sqlite(tmp_path / "ledger?mode=rwc&x=#.db", ROWS)


def test_columns_are_described_and_expressions_need_a_declared_type(ledger: Path) -> None:
    described = SqliteSource(ledger, table="ledger").describe()
    assert described.key == ("id",)
    assert [column.name for column in described.columns if not column.nullable] == ["id", "account"]
    [column] = SqliteSource(ledger, query="SELECT amount * 2 AS twice FROM ledger").describe().columns
    assert column.schema == {}


@pytest.mark.anyio
async def test_rows_of_a_query_of_the_operator(ledger: Path) -> None:
    query = "SELECT id, amount * 100 AS cents, booked FROM ledger WHERE account = 'a-1' -- only these;"
    columns = tuple(column for kind in ("id", "cents") if (column := read_column(kind, "integer")))
    data = DataSet(name="cents", sensitivity="low", database=str(ledger), query=query, columns=columns, key=("id",))
    page = await reader(opened(data))(cents_min=1000, limit=1)
    assert page["rows"] == [{"id": 1, "cents": 1050}]
    assert "next_cursor" in page


@rows(
    "settings, message",
    ({"table": "nothing"}, "has no table 'nothing'"),
    ({"query": "SELECT missing FROM ledger"}, "no such column: missing"),
    ({"query": "DELETE FROM ledger RETURNING id"}, "syntax error"),
)
def test_wrong_relations_are_named(ledger: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(DataSourceError, match=message):
        SqliteSource(ledger, **settings).describe()


def test_missing_file_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(DataSourceError, match="unable to open database file"):
        SqliteSource(tmp_path / "none.db", table="t").describe()
    assert list(tmp_path.iterdir()) == []


def test_connection_cannot_write(ledger: Path) -> None:
    source = SqliteSource(ledger, table="ledger")
    for statement in ("DELETE FROM ledger", "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "ATTACH ':memory:' AS x"):
        with pytest.raises(DataSourceError), source._opened() as connection:
            connection.execute(statement)
    with sqlite3.connect(ledger) as connection:
        assert connection.execute("SELECT count(*) FROM ledger").fetchone() == (len(ROWS),)


@pytest.mark.anyio
async def test_endless_query_ends_with_its_time(ledger: Path) -> None:
    column = read_column("x", "integer")
    assert column is not None
    data = DataSet(
        name="endless",
        sensitivity="low",
        database=str(ledger),
        query=f"SELECT * FROM ({ENDLESS})",
        columns=(column,),
        timeout=0.1,
    )
    assert (await reader(opened(data))()).status == 503
    from bespeak.runtime.concurrency import running_threads

    while running_threads():
        await asyncio.sleep(0.001)


def test_numbers_beyond_64_bits_compare_like_large_ones() -> None:
    assert as_number(7) == 7
    assert as_number("7.5") == 7.5
    assert as_number(2**63) == 2.0**63
    assert as_number(10**400) == -as_number(-(10**400)) > 1e308


NAMED = {column.name: column for column in COLUMNS}
ATTACK = "x'; DROP TABLE ledger; --"


@pytest.mark.parametrize("dialect", [SqliteDialect(), PostgresDialect()])
def test_what_callers_send_is_never_in_the_text(dialect: Dialect) -> None:
    query = DataQuery(
        limit=5,
        columns=("id",),
        filters=(
            DataFilter("memo", "eq", ATTACK),
            DataFilter("memo", "contains", ATTACK),
            DataFilter("memo", "in", [ATTACK, ATTACK]),
        ),
        order=(("memo", False), ("id", False)),
        after=(ATTACK, 3),
    )
    statement = Select(dialect, quote_name("ledger"), NAMED, query)
    assert "DROP" not in statement.text
    assert statement.parameters.count(ATTACK) == 5


def test_order_needs_no_extra_term_for_columns_that_are_never_null() -> None:
    columns = NAMED | {"id": replace(NAMED["id"], nullable=False)}
    query = DataQuery(limit=5, columns=("id",), order=(("id", False),), after=(3,))
    statement = Select(SqliteDialect(), quote_name("ledger"), columns, query)
    assert statement.text == (
        'SELECT t."id" AS "id" FROM "ledger" AS t WHERE (t."id" > ?1 OR (t."id" = ?1 AND FALSE)) '
        'ORDER BY t."id" LIMIT 5 OFFSET 0'
    )


def test_names_are_quoted_and_a_final_comment_hides_nothing() -> None:
    odd = DataColumn('a" FROM secrets; --', {"type": "string"})
    text = Select(SqliteDialect(), quote_name('b"c'), {odd.name: odd}, DataQuery(limit=1, columns=(odd.name,))).text
    assert text.startswith('SELECT t."a"" FROM secrets; --" AS "a"" FROM secrets; --" FROM "b""c" AS t')
    assert as_relation("SELECT 1 -- all;\n") == "(SELECT 1 -- all\n)"


def make(path: Path, **more: Any) -> DataSet:
    return DataSet(name="file", sensitivity="low", file=path, **more)


async def test_name_of_the_file_is_data(tmp_path: Path) -> None:
    folder = tmp_path / "it's; DROP"
    folder.mkdir()
    page = await reader(opened(make(write_file(folder / "l'edger.csv", ROWS), key=("id",))))(id=1)
    assert len(page["rows"]) == 1


async def test_nothing_but_the_file_can_be_opened(tmp_path: Path) -> None:
    source = FileSource(write_file(tmp_path / "ledger.csv", ROWS))
    other = write_file(tmp_path / "other.csv", ROWS)
    source.describe()
    database = source._open()
    for statement in (
        f"SELECT * FROM read_csv('{other}')",
        "SELECT * FROM read_text('/etc/passwd')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
        f"ATTACH '{tmp_path}/new.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
    ):
        with pytest.raises(duckdb.Error):
            database.execute(statement)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.csv", "other.csv"]
    database.close()


async def test_changes_of_the_file_are_seen(tmp_path: Path) -> None:
    path = write_file(tmp_path / "ledger.jsonl", ROWS[:1])
    read = reader(opened(make(path, key=("id",))))
    write_file(path, ROWS[:3])
    assert len((await read())["rows"]) == 3


async def test_file_that_goes_or_breaks_is_unavailable(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_file(tmp_path / "ledger.csv", ROWS)
    read = reader(opened(make(path, key=("id",))))
    path.write_text(path.read_text().replace("99999999.25", "many"))
    broken = await read()
    path.unlink()
    gone = await read()
    assert "ledger.csv does not exist" in caplog.text
    for refused in (broken, gone):
        assert refused.status == 503
        assert str(tmp_path) not in refused.message


@rows(
    "name, content, message",
    ("none.csv", None, "No such file"),
    ("long.csv", b"x" * 2_000_001, "a line of more than"),
    ("broken.jsonl", b'{"a": 1}\n{"a":\n', "cannot be read"),
    ("broken.parquet", b"PAR1", "cannot be read"),
)
async def test_unusable_files_are_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataSourceError, match=message) as error:
        FileSource(tmp_path / name).describe()
    assert name in str(error.value)
    assert "\n" not in str(error.value)


async def test_tabs_separate_and_nested_values_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tname\n1\ta,b\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "tags": ["x"], "place": {"type": "Point", "coordinates": [1, 2]}}\n')
    assert await reader(opened(make(tmp_path / "a.tsv")))() == {"rows": [{"id": 1, "name": "a,b"}]}
    nested = {"id": 1, "tags": ["x"], "place": {"type": "Point", "coordinates": [1, 2]}}
    assert await reader(opened(make(tmp_path / "b.jsonl")))() == {"rows": [nested]}


async def test_not_a_number_counts_as_no_value(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES (1, 'NaN'::DOUBLE), (2, 1.5), (3, 'Infinity')) AS v(id, x)) "
        f"TO '{path}' (FORMAT parquet)"
    )
    read = reader(opened(make(path, key=("id",))))
    assert await read(order="-x") == {"rows": [{"id": 2, "x": 1.5}, {"id": 1}, {"id": 3}]}
    assert await read(x_min=0) == {"rows": [{"id": 2, "x": 1.5}]}


@dataclass
class Booking:
    id: int
    account: str


class Other(msgspec.Struct):
    id: int
    account: str


def plain() -> list[dict[str, Any]]:
    return [{"id": 2, "account": "b"}, {"id": 1, "account": "a", "unknown": 5}]


def objects(query: DataQuery) -> tuple[Any, ...]:
    assert query.limit == 101
    return Booking(2, "b"), Other(1, "a")


def generated() -> Iterator[Any]:
    yield from plain()


async def waited(query: DataQuery) -> list[Any]:
    return plain()


async def streamed() -> AsyncIterator[Any]:
    for row in plain():
        yield row


@pytest.mark.parametrize("function", [plain, objects, generated, waited, streamed])
async def test_functions_of_every_form_give_rows(function: Any) -> None:
    data = DataSet(name="rows", sensitivity="low", target=function, columns=COLUMNS, key=("id",))
    assert await reader(opened(data))() == {"rows": [{"id": 1, "account": "a"}, {"id": 2, "account": "b"}]}


async def test_endless_rows_are_given_up(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.data.sources.MOST_SCANNED", 1000)

    def endless() -> Iterator[Any]:
        while True:
            yield {"id": 1}

    async def endless_later() -> AsyncIterator[Any]:
        while True:
            yield {"id": 1}

    for function in (endless, endless_later):
        data = DataSet(name="endless", sensitivity="low", target=function, columns=COLUMNS)
        assert (await reader(opened(data))()).status == 503
        assert "more than 1,000 rows; it should use the filters" in caplog.text


async def test_row_that_is_not_an_object_is_an_error_of_the_source(caplog: pytest.LogCaptureFixture) -> None:
    data = DataSet(name="odd", sensitivity="low", target=lambda: [1], columns=COLUMNS)
    assert isinstance(await reader(opened(data))(), Refused)
    assert "a row of type int" in caplog.text


async def test_result_is_that_of_the_function() -> None:
    def add(one: int, other: int, cancellable: Any) -> int:
        with cancellable(lambda: None):
            return one + other

    assert await run_interruptible(add, 1, 2) == 3


async def test_cancelling_ends_the_block() -> None:
    loop, began, stopped = asyncio.get_running_loop(), asyncio.Event(), Event()

    def wait(cancellable: Any) -> None:
        with cancellable(stopped.set):
            loop.call_soon_threadsafe(began.set)
            assert stopped.wait(10)

    task = asyncio.create_task(run_interruptible(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_block_that_was_left_is_not_interrupted() -> None:
    loop, left, go_on, interrupted = asyncio.get_running_loop(), asyncio.Event(), Event(), Event()

    def run(cancellable: Any) -> None:
        with cancellable(interrupted.set):
            pass
        loop.call_soon_threadsafe(left.set)
        go_on.wait(10)

    task = asyncio.create_task(run_interruptible(run))
    await left.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert not interrupted.is_set()


async def test_every_source_tells_the_types_of_its_columns(open_ledger: Callable[..., OpenedData]) -> None:
    described = open_ledger().source.describe()
    assert {column.name: column.kind for column in described.columns} == TYPES
    assert described.key in ((), ("id",))


async def test_columns_that_lack_values_are_published_so(open_ledger: Callable[..., OpenedData], kind: str) -> None:
    row = open_ledger().endpoint.output_schema["properties"]["rows"]["items"]["properties"]
    lacking = {name for name, schema in row.items() if "null" in schema["type"]}
    # A table says which columns may be null, a file which are, and a function what is declared.
    tables = {"amount", "booked", "changed_at", "memo", "pending"}
    files = {"amount", "memo", "pending"}
    assert lacking == (set() if kind in ("function", "async") else tables if kind in ("sqlite", "postgres") else files)
