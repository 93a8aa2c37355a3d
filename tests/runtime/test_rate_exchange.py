"""Processes that share a limit through a real store; the rates are slow, so no test waits for a clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.runtime.test_rate import SECOND, Clock
from tests.state.store.commands.test_rate import Database

from bespeak.contract.limits import Rate, RateLimits
from bespeak.errors import StoreUnavailableError
from bespeak.runtime.rate import EXCHANGE_PERIOD, Buckets, RateExchange, Rates
from bespeak.state.store.commands.workers import BucketUse
from bespeak.state.store.opening import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Store, Then

pytestmark = pytest.mark.anyio

TEN = Rate(10, "h", 10)


class Process:
    """One of several servers."""

    def __init__(self, store: Store, limits: RateLimits | None = None) -> None:
        self.clock = Clock()
        self.rates = Rates(limits or RateLimits(agent=TEN), self.clock)
        self.exchange = RateExchange(self.rates, store)

    @property
    def agent(self) -> Buckets:
        assert self.rates.agent is not None
        return self.rates.agent

    def admits(self, key: str = "a", most: int = 100) -> int:
        """Count how many calls in a row pass."""
        return next((number for number in range(most) if self.agent.take(key)), most)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest) -> str:
    return "memory" if request.param == "sqlite" else str(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    opened = open_store(place)
    try:
        await opened.start()
        yield opened
    finally:
        await opened.close()


@pytest.mark.process
async def test_calls_admitted_by_one_process_count_in_another(store: Store) -> None:
    one, other = Process(store), Process(store)
    assert one.admits(most=9) == 9
    await one.exchange.exchange()
    assert other.admits(most=1) == 1
    await other.exchange.exchange()
    assert other.admits() == 0
    await one.exchange.exchange()
    assert one.admits() == 1  # it has not asked since; what is too much is owed


async def test_excess_calls_are_made_up_for(store: Store) -> None:
    one, other = Process(store), Process(store)
    assert (one.admits(), other.admits()) == (10, 10)
    await one.exchange.exchange()
    await other.exchange.exchange()
    other.clock.now += 3599 * SECOND  # an hour refills ten, and twenty were taken
    assert other.admits() == 0
    other.clock.now += 361 * SECOND
    assert other.admits() == 1


async def test_callers_and_limits_are_counted_separately(store: Store) -> None:
    limits = RateLimits(agent=TEN, principal=TEN, endpoints={("BOOK", "/room"): TEN})
    one, other = Process(store, limits), Process(store, limits)
    one.admits("a")
    await one.exchange.exchange()
    for name, buckets in other.rates.named().items():
        buckets.take("a")
        buckets.take("b")
        assert name in ("agent", "principal", "BOOK /room")
    await other.exchange.exchange()
    refused = [(name, key) for name, buckets in other.rates.named().items() for key in "ab" if buckets.take(key)]
    assert refused == [("agent", "a")]


async def test_calls_at_the_steady_rate_owe_nothing(store: Store) -> None:
    process = Process(store, RateLimits(agent=Rate(100, "h", 1)))
    for _ in range(50):
        assert process.agent.take("a") == 0
        process.clock.now += 36 * SECOND
    await process.exchange.exchange()
    assert process.admits() == 1


async def test_tokens_taken_during_an_exchange_are_counted(store: Store) -> None:
    process = Process(store)
    process.admits(most=4)
    waiting = asyncio.ensure_future(process.exchange.exchange())
    await asyncio.sleep(0)
    assert process.admits(most=3) == 3
    await waiting
    assert process.admits() == 3


class Away(SqliteStore):
    """A store that cannot be reached."""

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        raise StoreUnavailableError("nobody answers")


async def test_without_the_store_each_process_counts_for_itself(
    anyio_backend: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = Away.in_memory()
    process = Process(store)
    assert process.admits() == 10
    with pytest.raises(StoreUnavailableError):
        await process.exchange.exchange()
    assert process.admits() == 0
    process.clock.now += 360 * SECOND
    assert process.admits() == 1
    await store.close()


async def test_closing_sends_the_remaining_counts(store: Store) -> None:
    one, other = Process(store), Process(store)
    one.exchange.start()
    one.admits()
    await one.exchange.close()
    await one.exchange.close()
    other.admits(most=1)
    await other.exchange.exchange()
    assert other.admits() == 0


async def test_more_buckets_than_fit_one_transaction_are_sent_in_several(store: Store) -> None:
    one, other = Process(store), Process(store)
    for number in range(1100):
        one.admits(f"agent-{number}", most=10)
    await one.exchange.exchange()
    for number in (0, 600, 1099):
        other.admits(f"agent-{number}", most=1)
    await other.exchange.exchange()
    assert [other.admits(f"agent-{number}") for number in (0, 600, 1099)] == [0, 0, 0]


@pytest.mark.parametrize(("rate", "processes"), [(Rate(50, "s", 10), 3), (Rate(100, "s", 1), 2), (Rate(5, "s", 40), 4)])
def test_processes_that_never_rest_keep_the_rate_of_one(rate: Rate, processes: int) -> None:
    clock, database = Clock(), Database()
    several = [Buckets(rate, clock) for _ in range(processes)]
    for buckets in several:
        buckets.taken = {}
    admitted, steps = 0, 6000
    for step in range(steps):  # ten milliseconds each, an exchange of each process in twenty of them
        for number, buckets in enumerate(several):
            admitted += sum(not buckets.take("a") for _ in range(3))
            if step % 20 == number * 5:
                for key, (cost, elapsed) in buckets.tell().items():
                    owed = database.take(BucketUse(key, cost / SECOND, elapsed / SECOND))
                    buckets.learn(key, int(owed[key] * SECOND))
        clock.now += SECOND // 100
        database.now += 0.01
    database.close()
    promised = rate.count * steps / 100
    tolerated = processes * (rate.burst + rate.count * EXCHANGE_PERIOD)
    assert 0.9 * promised <= admitted <= promised + tolerated
