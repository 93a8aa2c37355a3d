"""Units and questions on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from bespeak.errors import StoreError
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.postgres_connection import Address, Connection
from bespeak.state.store.postgres_transaction import read, transact
from bespeak.state.store.store import Command, Conflict, Notify, Seal, Sealed, Statement, Steps, Unit

pytestmark = pytest.mark.anyio


class Put(Command, frozen=True):
    value: str

    def steps(self) -> Steps:
        yield Statement("INSERT INTO nonces (kind, value, expires) VALUES ('k', ?, 0)", (self.value,))
        yield Notify("puts")


class Refuse(Command, frozen=True):
    def steps(self) -> Steps:
        yield Notify("never")
        return Conflict("no")


class CountTwice(Command, frozen=True):
    """Counts, waits for a write by another connection, counts again."""

    def steps(self) -> Steps:
        first = yield Statement("SELECT count(*) FROM nonces")
        yield Statement("SELECT pg_advisory_unlock_shared(1) FROM (SELECT pg_advisory_lock_shared(1)) AS held")
        second = yield Statement("SELECT count(*) FROM nonces")
        return first[0][0], second[0][0]


class Count(Command, frozen=True):
    def steps(self) -> Steps:
        rows = yield Statement("SELECT count(*) FROM nonces")
        return rows[0][0]


async def no_seal(_: Connection, __: Seal) -> Sealed:
    raise StoreError("no sealer")


@pytest.fixture
async def address(postgres_dsn: str) -> Address:
    store = PostgresStore(postgres_dsn)
    await store.start()
    await store.close()
    return Address(postgres_dsn, "full")


@pytest.fixture
async def connection(address: Address) -> AsyncIterator[Connection]:
    connection = await address.connect()
    yield connection
    await connection.close()


def unit(*commands: Command) -> Unit:
    return Unit(commands, None, asyncio.get_running_loop().create_future())


async def test_unit_is_committed_or_rolled_back_and_frees_its_connection(connection: Connection) -> None:
    assert await transact(connection, unit(Put("a"), Put("b")), no_seal) == [None, None]
    assert await transact(connection, unit(Put("c"), Refuse()), no_seal) == Conflict("no")
    with pytest.raises(asyncpg.UniqueViolationError):
        await transact(connection, unit(Put("d"), Put("a")), no_seal)
    assert not connection.is_in_transaction()
    assert await read(connection, Count()) == 2


async def test_topics_are_notified_only_with_the_commit(connection: Connection, address: Address) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = await address.connect()
    await listener.add_listener("bespeak", lambda _, __, ___, topic: heard.put_nowait(topic))
    await transact(connection, unit(Put("x"), Refuse()), no_seal)
    await transact(connection, unit(Put("y"), Put("z")), no_seal)
    assert await asyncio.wait_for(heard.get(), 20) == "puts"
    assert heard.empty()
    await listener.close()


async def test_an_outage_closes_the_connection(connection: Connection) -> None:
    class End(Command, frozen=True):
        def steps(self) -> Steps:
            yield Statement("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises((asyncpg.AdminShutdownError, asyncpg.ConnectionDoesNotExistError)):
        await transact(connection, unit(Put("a"), End()), no_seal)
    assert connection.is_closed()


async def test_all_statements_of_a_read_see_one_state(connection: Connection, address: Address) -> None:
    other = await address.connect()
    await other.execute("SELECT pg_advisory_lock(1)")
    question = asyncio.ensure_future(read(connection, CountTwice()))
    while not await other.fetch("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
        assert not question.done()
    await other.execute("INSERT INTO nonces (kind, value, expires) VALUES ('k', 'v', 0)")
    await other.execute("SELECT pg_advisory_unlock(1)")
    assert await question == (0, 0)
    assert await read(connection, CountTwice()) == (1, 1)
    await other.close()


async def test_read_of_one_statement_needs_no_transaction(connection: Connection) -> None:
    class When(Command, frozen=True):
        def steps(self) -> Steps:
            return (yield Statement("SELECT current_setting('transaction_isolation')"))[0][0]

    assert await read(connection, When()) == "read committed"
