"""Rate limits: buckets with a manual clock, and processes that share a limit through a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, echo, make_endpoint
from tests.state.store.commands.test_rate import Database

from bespeak.contract.limits import Rate, RateLimits
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.runtime.rate import EXCHANGE_PERIOD, Buckets, RateExchange, Rates, caller, network, unused_limits
from bespeak.state.store.commands.workers import BucketUse
from bespeak.state.store.settings import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Store, Then

pytestmark = pytest.mark.anyio

SECOND = 1_000_000_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: int = 5 * SECOND) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_burst_is_admitted_then_one_call_for_each_interval_whatever_was_refused() -> None:
    clock = Clock()
    buckets = Buckets(Rate(2, "s", 3), clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == SECOND // 2
    clock.now += SECOND // 2 - 1
    assert buckets.take("a") == 1
    clock.now += 1
    assert buckets.take("a") == 0
    assert buckets.take("a") == SECOND // 2
    buckets = Buckets(Rate(1, "min", 1), clock)
    assert buckets.take("a") == 0
    assert {buckets.take("a") for _ in range(100)} == {60 * SECOND}


def test_only_limited_callers_have_buckets_each_of_its_own() -> None:
    buckets = Buckets(Rate(1, "s", 1), Clock())
    assert [buckets.take("a"), buckets.take("b")] == [0, 0]
    assert buckets.take("a") > 0
    rates = Rates(RateLimits(agent=Rate(1, "s", 1)))
    assert rates.agent is not None
    assert (rates.address, rates.principal, rates.endpoints) == (None, None, {})


@given(
    st.integers(1, 1000),
    st.sampled_from(["s", "min"]),
    st.integers(1, 20),
    st.lists(st.integers(0, SECOND), max_size=200),
)
def test_no_stretch_of_time_sees_more_than_burst_and_rate(count: int, unit: str, burst: int, pauses: list[int]) -> None:
    clock = Clock()
    rate = Rate(count, unit, burst)
    buckets = Buckets(rate, clock)
    admitted: list[int] = []
    for pause in pauses:
        clock.now += pause
        wait = buckets.take("a")
        if wait:
            assert 0 < wait <= rate.interval
        else:
            admitted.append(clock.now)
    seconds = {"s": 1, "min": 60}[unit]
    for first, start in enumerate(admitted):
        for last in range(first, len(admitted)):
            # burst + rate * t, in whole numbers
            assert (last - first + 1 - burst) * seconds * SECOND <= count * (admitted[last] - start)


@given(st.integers(1, 50), st.integers(1, 20), st.lists(st.integers(0, SECOND), max_size=100))
def test_a_caller_that_waits_as_long_as_retry_after_is_admitted(count: int, burst: int, pauses: list[int]) -> None:
    clock = Clock()
    buckets = Buckets(Rate(count, "s", burst), clock)
    for pause in pauses:
        clock.now += pause
        wait = buckets.take("a")
        if wait:
            clock.now += wait
            assert buckets.take("a") == 0


def test_new_callers_use_bounded_memory_and_share_a_bucket_beyond_it() -> None:
    clock = Clock()
    buckets = Buckets(Rate(1, "min", 1), clock, most=100)
    assert buckets.take("victim") == 0
    for number in range(10_000):
        buckets.take(f"stranger-{number}")
    assert len(buckets) <= 101  # and the bucket of the crowd
    assert buckets.take("victim") > 0
    buckets = Buckets(Rate(1, "s", 2), clock, most=10)
    for number in range(10):
        buckets.take(f"first-{number}")
    assert [buckets.take(f"late-{number}") for number in range(3)] == [0, 0, SECOND]
    clock.now += SECOND
    assert [buckets.take(f"later-{number}") for number in range(3)] == [0, 0, 0]


def test_full_buckets_make_room_and_others_stay() -> None:
    clock = Clock()
    buckets = Buckets(Rate(1, "s", 5), clock, most=10)
    for _ in range(5):
        buckets.take("busy")
    for number in range(9):
        buckets.take(f"once-{number}")
    clock.now += SECOND
    assert buckets.take("new") == 0
    assert len(buckets) == 2
    assert [buckets.take("busy"), buckets.take("busy")] == [0, SECOND]


@rows(
    "one, other, same",
    ("192.0.2.1", "192.0.2.2", False),
    ("192.0.2.1", "::ffff:192.0.2.1", True),
    ("2001:db8::1", "2001:db8::ffff:2", True),
    ("2001:db8::1", "2001:db8:0:1::1", False),
    ("fe80::1%eth0", "fe80::2", True),
    ("", "192.0.2.1", False),
    ("a-socket", "b-socket", False),
)
def test_a_network_is_the_address_range_of_one_subscriber(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_a_caller_is_its_agent_and_else_its_network() -> None:
    assert caller(Principal(agent_id=AGENT), "192.0.2.1") == AGENT
    assert caller(ANONYMOUS, "192.0.2.1") == "@192.0.2.1"


def test_a_limit_for_an_endpoint_that_is_not_there_is_reported() -> None:
    rate = Rate(1, "s", 1)
    limits = RateLimits(endpoints={("BOOK", "/room"): rate, ("BOOK", "/rom"): rate})
    [finding] = unused_limits(limits, [make_endpoint("BOOK", "/room", echo)])
    assert (finding.rule, finding.severity) == ("Y821", "warning")
    assert "BOOK /rom," in finding.message


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
    return "memory" if request.param == "sqlite" else str(request.getfixturevalue("postgres_store"))


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


async def test_without_store_each_process_counts_alone(anyio_backend: Any, caplog: pytest.LogCaptureFixture) -> None:
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
