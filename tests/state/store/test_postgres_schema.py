"""Tables in PostgreSQL: created once by any process, and refused if foreign or too new."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import asyncpg
import pytest
from tests.postgres import PostgresServer

from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.state.store import postgres_connection
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.postgres_connection import READERS, READING, Address, ConnectionPool, migrate, version_of
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.transfer import shapes

pytestmark = pytest.mark.anyio

_START = """
import asyncio, sys
from bespeak.state.store.postgres import PostgresStore
async def main():
    store = PostgresStore(sys.argv[1])
    sys.stdin.readline()
    await store.start()
    await store.close()
asyncio.run(main())
"""


async def rows(dsn: str, sql: str, *parameters: Any) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *parameters)]
    finally:
        await connection.close()


async def test_a_new_database_gets_all_tables_in_their_own_schema_once(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "bespeak"})
    try:
        assert await version_of("It", connection) == 0
        assert await migrate("It", connection) == 0
        assert await migrate("It", connection) == CURRENT
    finally:
        await connection.close()
    found = await rows(postgres_dsn, "SELECT table_name, column_name FROM information_schema.columns "
                       "WHERE table_schema = 'bespeak' ORDER BY table_name, ordinal_position")  # fmt: skip
    tables: dict[str, tuple[str, ...]] = {}
    for table, column in found:
        tables[table] = (*tables.get(table, ()), column)
    assert tables.pop("version") == ("version",)
    assert tables.pop("resources_text") == ("position", "words")  # an index, which is made again from what it indexes
    assert tables == {name: shape.columns for name, shape in shapes().items()}
    assert await rows(postgres_dsn, "SELECT version FROM bespeak.version") == [(CURRENT,)]


@pytest.mark.process
async def test_concurrent_processes_create_the_tables_once(postgres_dsn: str) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _START, postgres_dsn), stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(4)
    ]
    ended = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    assert [(process.returncode, errors) for process, (_, errors) in zip(processes, ended, strict=True)] == [
        (0, b"")
    ] * 4
    assert await rows(postgres_dsn, "SELECT version FROM bespeak.version") == [(CURRENT,)]


async def test_concurrent_stores_of_one_process_create_the_tables_once(postgres_dsn: str) -> None:
    stores = [PostgresStore(postgres_dsn) for _ in range(4)]
    await asyncio.gather(*(store.start() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    assert await rows(postgres_dsn, "SELECT version FROM bespeak.version") == [(CURRENT,)]


async def test_a_migration_that_fails_leaves_nothing_behind(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "bespeak.state.store.sql.migrations", lambda: (("CREATE TABLE idempotency (a TEXT)", "NONSENSE"),)
        )
        with pytest.raises(ConfigError, match="syntax error"):
            await PostgresStore(postgres_dsn).start()
    assert await rows(postgres_dsn, "SELECT nspname FROM pg_namespace WHERE nspname = 'bespeak'") == []
    store = PostgresStore(postgres_dsn)
    await store.start()
    await store.close()


async def test_tables_of_a_newer_release_are_refused(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn)
    await store.start()
    await store.close()
    await rows(postgres_dsn, "UPDATE bespeak.version SET version = 99")
    with pytest.raises(ConfigError, match=r"newer bespeak \(tables of version 99"):
        await PostgresStore(postgres_dsn).start()


async def test_foreign_schema_is_refused_and_left_unchanged(postgres_dsn: str) -> None:
    await rows(postgres_dsn, "CREATE SCHEMA bespeak")
    await rows(postgres_dsn, "CREATE TABLE bespeak.mine (a TEXT)")
    with pytest.raises(ConfigError, match="belongs to something else"):
        await PostgresStore(postgres_dsn).start()
    assert await rows(postgres_dsn, "SELECT relname FROM pg_class WHERE relnamespace = 'bespeak'::regnamespace") == [
        ("mine",)
    ]


async def test_user_without_create_right_can_use_existing_tables(
    postgres_dsn: str, postgres_server: PostgresServer
) -> None:
    name = postgres_dsn.rpartition("/")[2]
    user = f"plain_{name}"
    await rows(postgres_dsn, f"CREATE ROLE {user} LOGIN")
    dsn = postgres_server.dsn(name, user)
    with pytest.raises(ConfigError, match="does not allow it"):
        await PostgresStore(dsn).start()
    owner = PostgresStore(postgres_dsn)
    await owner.start()
    await owner.close()
    await rows(postgres_dsn, f"GRANT USAGE ON SCHEMA bespeak TO {user}")
    await rows(postgres_dsn, f"GRANT ALL ON ALL TABLES IN SCHEMA bespeak TO {user}")
    store = PostgresStore(dsn)
    await store.start()
    await store.close()


async def test_a_database_in_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    await rows(postgres_server.dsn(), "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(ConfigError, match="UTF-8"):
        await PostgresStore(postgres_server.dsn("latin")).start()


@pytest.fixture
def pool(postgres_dsn: str) -> ConnectionPool:
    return ConnectionPool(Address(postgres_dsn, "full"), READERS, READING)


async def test_connection_is_reused(pool: ConnectionPool) -> None:
    first = await pool.take()
    pool.give_back(first)
    assert await pool.take() is first
    pool.give_back(first)
    await pool.close()
    assert first.is_closed()


async def test_closed_or_busy_connection_is_not_reused(pool: ConnectionPool) -> None:
    closed = await pool.take()
    pool.give_back(closed)
    closed.terminate()
    busy = await pool.take()
    assert busy is not closed
    await busy.execute("BEGIN")
    pool.give_back(busy)
    other = await pool.take()
    assert other is not busy
    assert busy.is_closed()
    pool.give_back(other)
    await pool.close()


async def test_pool_is_bounded_and_waiting_times_out(pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "COMMAND_SECONDS", 0.01)
    taken = [await pool.take() for _ in range(READERS)]
    with pytest.raises(StoreUnavailableError, match="busy"):
        await pool.take()
    pool.give_back(taken.pop())
    taken.append(await pool.take())
    for connection in taken:
        pool.give_back(connection)
    monkeypatch.undo()
    await pool.close()


async def test_read_connection_cannot_write(pool: ConnectionPool) -> None:
    connection = await pool.take()
    assert [tuple(row) for row in await connection.fetch("SHOW transaction_read_only")] == [("on",)]
    pool.give_back(connection)
    await pool.close()


async def test_failed_attempt_does_not_occupy_a_slot() -> None:
    pool = ConnectionPool(Address("postgresql://127.0.0.1:1/nowhere", "full"), READERS, READING)
    for _ in range(READERS + 1):
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            await pool.take()


async def test_those_behind_others_wait_longer_if_the_database_is_far_away(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = [await pool.take() for _ in range(READERS)]
    monkeypatch.setattr(postgres_connection, "COMMAND_SECONDS", 0.0)  # no time at all, beside that for those in front
    monkeypatch.setattr(pool, "_typical", 60.0)
    first, second = asyncio.ensure_future(pool.take()), asyncio.ensure_future(pool.take())
    with pytest.raises(StoreUnavailableError, match="busy"):
        await first
    pool.give_back(taken.pop())
    taken.append(await second)
    assert pool._typical < 60.0  # by now it is known to be near
    for connection in taken:
        pool.give_back(connection)
    monkeypatch.undo()
    await pool.close()
