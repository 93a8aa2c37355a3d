from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest
from tests.cases import rows
from tests.extensions.data.ledger import opened, reader

from bespeak.contract.data_set import DataSet
from bespeak.errors import DataSourceError
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.postgres import PostgresSource
from bespeak.protocol.exchange.refusal import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.process]

MakeReader = Callable[[DataSet], Callable[..., Any]]
TABLE = """
DROP SCHEMA IF EXISTS bank CASCADE; CREATE SCHEMA bank;
CREATE SEQUENCE bank.numbers; CREATE TYPE bank.mood AS ENUM ('calm', 'busy');
CREATE TABLE bank.everything (
    key uuid, place int, exact numeric, rough float8, mood bank.mood, at timestamp, tags text[], notes jsonb,
    picture bytea, PRIMARY KEY (place, key)
);
INSERT INTO bank.everything VALUES
    ('00000000-0000-0000-0000-000000000001', 1, 12345678901234567890.12, 'NaN', 'calm', '2026-01-01',
        '{a,b}', '{"x": 1}'),
    ('00000000-0000-0000-0000-000000000002', 1, 12345678901234567890.13, 0.1, 'busy', '2026-01-02', null, null),
    ('00000000-0000-0000-0000-000000000003', 2, 'NaN', '-Infinity', null, null, null, null)
"""


@pytest.fixture
async def bank(postgres_dsn: str) -> str:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(TABLE)
    await connection.close()
    return postgres_dsn


def source(dsn: str, **more: str) -> PostgresSource:
    return PostgresSource(dsn, "the bank", timeout=5, **more)


@pytest.fixture
async def make_reader() -> AsyncIterator[MakeReader]:
    made: list[OpenedData] = []

    def make(data: DataSet) -> Callable[..., Any]:
        made.append(opened(data))
        return reader(made[-1])

    yield make
    for one in made:
        await one.source.close()


async def read_all(read: Callable[..., Any], **values: Any) -> list[dict[str, Any]]:
    rows, cursor = list[dict[str, Any]](), dict[str, str]()
    while True:
        page = await read(**values, **cursor)
        rows += page["rows"]
        if "next_cursor" not in page:
            return rows
        cursor = {"cursor": page["next_cursor"]}


async def test_types_and_key_come_from_the_table(bank: str) -> None:
    described = source(bank, table="bank.everything").describe()
    assert described.key == ("place", "key")
    kinds = [f"{column.name} {column.kind}" for column in described.columns]
    assert kinds == [
        *("key string", "place integer", "exact number", "rough number"),
        *("mood string", "at date-time", "tags array", "notes object"),
    ]


async def test_all_types_are_filtered_sorted_and_paged(bank: str, make_reader: MakeReader) -> None:
    data = make_reader(DataSet(name="everything", sensitivity="low", database=bank, table="bank.everything"))
    for order in ("key", "-key", "exact", "-exact", "rough", "mood", "at", "place"):
        found = await read_all(data, order=order, limit=1, fields=["key"])
        assert len({row["key"] for row in found}) == 3, order
    assert len(await read_all(data, mood="busy", rough=0.1, exact_min=1, at_from="2026-01-02T00:00:00Z")) == 1
    assert len(await read_all(data, mood_contains="AL")) == 1
    [first] = await read_all(data, key="00000000-0000-0000-0000-000000000001")
    assert (first["tags"], first["notes"], first["rough"]) == (["a", "b"], {"x": 1}, None)


async def test_connections_are_read_only(bank: str, make_reader: MakeReader, caplog: pytest.LogCaptureFixture) -> None:
    data = DataSet(
        name="writing",
        sensitivity="low",
        database=bank,
        query="SELECT nextval('bank.numbers') AS id FROM (SELECT 1) AS one",
        columns=(),
    )
    assert (await make_reader(data)()).status == 503
    assert "read-only transaction" in caplog.text


@rows(
    "settings, message",
    ({"table": "bank.nothing"}, "does not exist"),
    ({"query": "SELECT nothing FROM bank.everything"}, "does not exist"),
    ({"query": "SELECT 1; DROP SCHEMA bank CASCADE"}, "syntax error"),
    ({"table": 'bank.everything"; DROP SCHEMA bank; --'}, "does not exist"),
)
async def test_wrong_relations_are_named(bank: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(DataSourceError, match=f"the bank cannot be read: .*{message}"):
        source(bank, **settings).describe()


async def test_unreachable_database_is_named_without_the_password() -> None:
    with pytest.raises(DataSourceError) as error:
        source("postgresql://me:secret@127.0.0.1:1/bank", table="t").describe()
    assert "secret" not in str(error.value)


async def test_slow_query_is_cancelled_on_the_server(bank: str, make_reader: MakeReader) -> None:
    data = DataSet(name="slow", sensitivity="low", database=bank, query="SELECT pg_sleep(60)::text AS x", timeout=0.2)
    read = make_reader(data)
    tasks = [asyncio.create_task(read()) for _ in range(3)]
    assert {page.status for page in await asyncio.gather(*tasks) if isinstance(page, Refused)} == {503}
    connection = await asyncpg.connect(bank)
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT t.%pg_sleep%' AND state = 'active'"
    while await connection.fetchval(sleeping):
        await asyncio.sleep(0.01)
    await connection.close()
