"""The connection pool: connections are reused, bounded, and never shared while busy."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.state.store import postgres_connection
from bespeak.state.store.postgres_connection import READERS, READING, Address, Pool

pytestmark = pytest.mark.anyio


@pytest.fixture
def pool(postgres_dsn: str) -> Pool:
    return Pool(Address(postgres_dsn, "full"), READERS, READING)


async def test_connection_is_reused(pool: Pool) -> None:
    first = await pool.take()
    pool.give_back(first)
    assert await pool.take() is first
    pool.give_back(first)
    await pool.close()
    assert first.is_closed()


async def test_closed_or_busy_connection_is_not_reused(pool: Pool) -> None:
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


async def test_pool_is_bounded_and_waiting_times_out(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_read_connection_cannot_write(pool: Pool) -> None:
    connection = await pool.take()
    assert [tuple(row) for row in await connection.fetch("SHOW transaction_read_only")] == [("on",)]
    pool.give_back(connection)
    await pool.close()


async def test_failed_attempt_does_not_occupy_a_slot() -> None:
    pool = Pool(Address("postgresql://127.0.0.1:1/nowhere", "full"), READERS, READING)
    for _ in range(READERS + 1):
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            await pool.take()


async def test_those_behind_others_wait_longer_if_the_database_is_far_away(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
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
