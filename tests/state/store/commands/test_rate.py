"""Shared buckets: what they owe, by the clock of the database or by one that is moved by hand."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.state.store.commands.workers import BucketUse, TakeTokens
from bespeak.state.store.sql import SQLITE_WORDS, statements
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import PurgeExpired


class Database:
    """The tables with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._connection = sqlite3.connect(":memory:")
        for statement in statements(0, SQLITE_WORDS):
            self._connection.execute(statement)

    def take(self, *uses: BucketUse) -> dict[str, float]:
        program = TakeTokens(uses).steps()
        rows: Any = None
        try:
            while True:
                step: Any = program.send(rows)
                rows = self._connection.execute(step.sql.replace("{now}", repr(self.now)), step.parameters).fetchall()
        except StopIteration as end:
            found: dict[str, float] = end.value
            return found

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def database() -> Any:
    opened = Database()
    yield opened
    opened.close()


def test_taken_tokens_are_owed_until_they_have_refilled(database: Database) -> None:
    assert database.take(BucketUse("a", 10)) == {"a": 10}
    database.now += 4
    assert database.take(BucketUse("a", 1)) == {"a": 7}
    database.now += 100
    assert database.take(BucketUse("a", 1)) == {"a": 1}
    assert database.take(BucketUse("b", 10, elapsed=10)) == {"b": 0}
    assert database.take(BucketUse("b", 10, elapsed=4)) == {"b": 10}


def test_two_processes_share_a_bucket(database: Database) -> None:
    database.take(BucketUse("a", 10, elapsed=10))
    assert database.take(BucketUse("a", 10, elapsed=10)) == {"a": 10}


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 64, 147])
def test_any_number_of_buckets_is_charged_independently(database: Database, count: int) -> None:
    uses = [BucketUse(f"bucket-{number}", number) for number in range(count)]
    assert database.take(*uses) == {use.name: use.cost for use in uses}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), max_size=20))
def test_bucket_owes_taken_minus_refilled_tokens(reports: list[tuple[int, int, int]]) -> None:
    database = Database()
    try:
        owed = float("-inf")  # full for ever
        for pause, cost, elapsed in reports:
            database.now += pause
            owed = max(owed - pause + cost, cost - elapsed)
            assert database.take(BucketUse("a", cost, elapsed)) == {"a": pytest.approx(owed)}
    finally:
        database.close()


@pytest.mark.anyio
async def test_store_uses_the_clock_of_the_database(store: Store) -> None:
    results = await store.do(TakeTokens((BucketUse("b", 1000), BucketUse("a", 2000))))
    assert not isinstance(results, Conflict)
    assert results[0] == {"a": pytest.approx(2000, abs=1), "b": pytest.approx(1000, abs=1)}


@pytest.mark.anyio
async def test_only_full_buckets_are_removed(store: Store) -> None:
    await store.do(TakeTokens((BucketUse("full", 10, elapsed=60), BucketUse("empty", 1000))))
    assert await store.do(PurgeExpired()) == [1]
    results = await store.do(TakeTokens((BucketUse("empty", 0),)))
    assert not isinstance(results, Conflict)
    assert results[0]["empty"] == pytest.approx(1000, abs=1)


@pytest.mark.anyio
async def test_store_sums_the_use_of_all_processes(store: Store) -> None:
    many = tuple(BucketUse(f"bucket-{number}", 1000, elapsed=1000) for number in range(147))
    for owed in (0, 1000, 2000):
        results = await store.do(TakeTokens(many))
        assert not isinstance(results, Conflict)
        assert results[0] == {use.name: pytest.approx(owed, abs=1) for use in many}
