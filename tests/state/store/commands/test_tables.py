"""Whole tables: every row once, of one moment; filled whole or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.store import Conflict, Rows, Store
from bespeak.state.store.transfer import CountExpired, CountRows, FillTables, NumberedRow, ReadTables, WrongRowError

pytestmark = pytest.mark.anyio


async def test_rows_and_expired_rows_are_counted(store: Store) -> None:
    await store.do(UseNonce("k", "old", -1), UseNonce("k", "new", 60))
    assert await store.read(CountRows("nonces")) == 2
    assert await store.read(CountExpired("nonces")) == 1
    assert await store.read(CountRows("audit")) == 0


async def contents(store: Store) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}

    def take(table: str, rows: Rows) -> bool:
        found.setdefault(table, []).extend(map(tuple, rows))
        return True

    count = await store.read(ReadTables(take))
    assert count == sum(map(len, found.values()))
    return found


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
async def test_every_row_is_read_once_for_any_number_of_pages(store: Store, count: int) -> None:
    await asyncio.gather(*(store.do(UseNonce(f"k{number % 3}", str(number), 60)) for number in range(count)))
    found = (await contents(store)).get("nonces", [])
    assert sorted(row[:2] for row in found) == sorted((f"k{number % 3}", str(number)) for number in range(count))


async def test_changes_during_reading_are_not_seen(first: Store, second: Store) -> None:
    await asyncio.gather(*(first.do(UseNonce("k", f"{number:04}", 60)) for number in range(300)))
    loop, seen, wrote = asyncio.get_running_loop(), 0, False

    class Interruption:
        def take(self, _: str, rows: Rows) -> bool:
            nonlocal seen, wrote
            seen += len(rows)
            if not wrote:
                wrote = True
                # On PostgreSQL this runs in the loop, which must go on to let the other store write.
                pending.append(asyncio.run_coroutine_threadsafe(second.do(UseNonce("k", "9999", 60)), loop))
                if threading.current_thread() is not reading:
                    # SQLite reads in a thread: be sure that the change comes between two pages.
                    assert pending[0].result(10) == [True]
            return True

    reading = threading.current_thread()
    pending: list[Any] = []
    assert await first.read(ReadTables(Interruption().take)) == 300
    assert await asyncio.wrap_future(pending[0]) == [True]
    assert await first.read(CountRows("nonces")) == 301


async def test_reading_can_be_stopped_early(store: Store) -> None:
    await asyncio.gather(*(store.do(UseNonce("k", str(number), 60)) for number in range(300)))
    assert await store.read(ReadTables(lambda _, __: False)) == 100


def nonces(*values: str) -> Iterable[NumberedRow]:
    return [(line, "nonces", ("k", value, 1.5)) for line, value in enumerate(values, 2)]


async def test_new_rows_are_numbered_after_imported_ones(store: Store) -> None:
    rows = [(2, "nonces", ("k", "a", 1.5)), (3, "audit", (7, "s", 1, "agent", "id", "jws"))]
    assert await store.do(FillTables(lambda: rows)) == [2]
    assert (await contents(store))["nonces"] == [("k", "a", 1.5)]
    await store.do(AppendAudit("other", {}))
    assert [row[0] for row in await store.read(ScanAudit())] == [7, 8]


@pytest.mark.parametrize("count", [0, 49, 50, 51, 120])
async def test_any_number_of_rows_can_be_put(store: Store, count: int) -> None:
    values = [str(number) for number in range(count)]
    assert await store.do(FillTables(lambda: nonces(*values))) == [count]
    assert await store.read(CountRows("nonces")) == count


async def test_import_into_tables_with_rows_is_refused(store: Store) -> None:
    await store.do(UseNonce("k", "mine", 60))
    assert await store.do(FillTables(lambda: nonces("a"))) == Conflict("not-empty", {"table": "nonces"})
    assert await store.read(CountRows("nonces")) == 1


async def test_duplicate_row_refuses_the_whole_import(store: Store) -> None:
    outcome = await store.do(FillTables(lambda: nonces(*map(str, range(60)), "7")))
    assert isinstance(outcome, Conflict)
    assert outcome.reason == "wrong-row"
    assert outcome.details["message"] == "a row of nonces between the lines 52 and 62 has the key of another one"
    assert await store.read(CountRows("nonces")) == 0


async def test_invalid_row_rolls_back_the_rows_before_it(store: Store) -> None:
    def rows() -> Iterable[NumberedRow]:
        yield from nonces(*map(str, range(60)))
        raise WrongRowError(62, "it is broken")

    assert await store.do(FillTables(rows)) == Conflict("wrong-row", {"line": 62, "message": "it is broken"})
    assert await store.read(CountRows("nonces")) == 0
    assert await store.do(UseNonce("k", "1", 60)) == [True]
