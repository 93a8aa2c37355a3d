""""""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from tests.extensions.data.ledger import COLUMNS, ROWS, fill_sqlite, opened, reader

from bespeak.contract.data_set import DataColumn, DataSet, read_column
from bespeak.errors import DataSourceError
from bespeak.extensions.data.postgres import PostgresDialect
from bespeak.extensions.data.query import DataFilter, DataQuery
from bespeak.extensions.data.sources import (
    Dialect,
    SqliteDialect,
    SqliteSource,
    Statement,
    as_number,
    as_relation,
    quote,
)
from bespeak.protocol.exchange.refusal import Refused

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS x FROM n"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return fill_sqlite(tmp_path / "ledger?mode=rwc&x=#.db", ROWS)


def test_primary_key_and_columns_that_are_never_null_are_known(ledger: Path) -> None:
    described = SqliteSource(ledger, table="ledger").describe()
    assert described.key == ("id",)
    assert [column.name for column in described.columns if not column.nullable] == ["id", "account"]


@pytest.mark.anyio
async def test_rows_of_a_query_of_the_operator(ledger: Path) -> None:
    query = "SELECT id, amount * 100 AS cents, booked FROM ledger WHERE account = 'a-1' -- only these;"
    columns = tuple(column for kind in ("id", "cents") if (column := read_column(kind, "integer")))
    data = DataSet(name="cents", sensitivity="low", database=str(ledger), query=query, columns=columns, key=("id",))
    page = await reader(opened(data))(cents_min=1000, limit=1)
    assert not isinstance(page, Refused)
    assert page["rows"] == [{"id": 1, "cents": 1050}]
    assert "next_cursor" in page


def test_type_of_an_expression_must_be_declared(ledger: Path) -> None:
    [column] = SqliteSource(ledger, query="SELECT amount * 2 AS twice FROM ledger").describe().columns
    assert column.schema == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"table": "nothing"}, "has no table 'nothing'"),
        ({"query": "SELECT missing FROM ledger"}, "no such column: missing"),
        ({"query": "DELETE FROM ledger RETURNING id"}, "syntax error"),
    ],
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
    refused = await reader(opened(data))()
    assert isinstance(refused, Refused)
    assert refused.status == 503
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
    statement = Statement(dialect, quote("ledger"), NAMED, query)
    assert "DROP" not in statement.text
    assert statement.parameters.count(ATTACK) == 5


def test_order_needs_no_extra_term_for_columns_that_are_never_null() -> None:
    columns = NAMED | {"id": replace(NAMED["id"], nullable=False)}
    query = DataQuery(limit=5, columns=("id",), order=(("id", False),), after=(3,))
    statement = Statement(SqliteDialect(), quote("ledger"), columns, query)
    assert statement.text == (
        'SELECT t."id" AS "id" FROM "ledger" AS t WHERE (t."id" > ?1 OR (t."id" = ?1 AND FALSE)) '
        'ORDER BY t."id" LIMIT 5 OFFSET 0'
    )


def test_names_are_quoted() -> None:
    odd = DataColumn('a" FROM secrets; --', {"type": "string"})
    text = Statement(SqliteDialect(), quote('b"c'), {odd.name: odd}, DataQuery(limit=1, columns=(odd.name,))).text
    assert text.startswith('SELECT t."a"" FROM secrets; --" AS "a"" FROM secrets; --" FROM "b""c" AS t')


def test_comment_at_the_end_of_a_query_hides_nothing() -> None:
    assert as_relation("SELECT 1 -- all;\n") == "(SELECT 1 -- all\n)"
