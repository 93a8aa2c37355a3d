"""Buckets with a manual clock: what they admit, drop and never drop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service import AGENT, echo, make_endpoint

from bespeak.contract.limits import Rate, RateLimits
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.runtime.rate import Buckets, Rates, caller, network, unused_limits

SECOND = 1_000_000_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: int = 5 * SECOND) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_a_burst_is_admitted_then_one_call_for_each_interval() -> None:
    clock = Clock()
    buckets = Buckets(Rate(2, "s", 3), clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == SECOND // 2
    clock.now += SECOND // 2 - 1
    assert buckets.take("a") == 1
    clock.now += 1
    assert buckets.take("a") == 0
    assert buckets.take("a") == SECOND // 2


def test_a_refusal_does_not_move_the_end_of_the_wait() -> None:
    clock = Clock()
    buckets = Buckets(Rate(1, "min", 1), clock)
    assert buckets.take("a") == 0
    assert {buckets.take("a") for _ in range(100)} == {60 * SECOND}


def test_callers_do_not_pay_for_each_other() -> None:
    buckets = Buckets(Rate(1, "s", 1), Clock())
    assert [buckets.take("a"), buckets.take("b")] == [0, 0]
    assert buckets.take("a") > 0


@given(
    st.integers(1, 1000),
    st.sampled_from(["s", "min"]),
    st.integers(1, 20),
    st.lists(st.integers(0, SECOND), max_size=200),
)
def test_no_stretch_of_time_sees_more_than_the_burst_and_the_rate(
    count: int, unit: str, burst: int, pauses: list[int]
) -> None:
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


def test_many_new_callers_use_bounded_memory_and_reset_no_bucket() -> None:
    clock = Clock()
    buckets = Buckets(Rate(1, "min", 1), clock, most=100)
    assert buckets.take("victim") == 0
    for number in range(10_000):
        buckets.take(f"stranger-{number}")
    assert len(buckets) <= 101  # and the bucket of the crowd
    assert buckets.take("victim") > 0


def test_strangers_beyond_the_table_share_one_bucket() -> None:
    clock = Clock()
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


def test_only_what_is_limited_has_buckets() -> None:
    rates = Rates(RateLimits(agent=Rate(1, "s", 1)))
    assert rates.agent is not None
    assert (rates.address, rates.principal, rates.endpoints) == (None, None, {})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("", "192.0.2.1", False),
        ("a-socket", "b-socket", False),
    ],
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
