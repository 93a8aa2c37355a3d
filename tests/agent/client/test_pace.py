"""Turns: as many in a minute as were agreed on, whoever wants them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.discovery.web import Time

from bespeak.agent.client.http_transport import Pace

pytestmark = pytest.mark.anyio


def pace(per_minute: int) -> tuple[Pace, Time]:
    moment = Time()
    return Pace(per_minute, clock=moment, sleep=moment.sleep), moment


async def test_turns_are_given_at_once_until_the_minute_is_full() -> None:
    turns, moment = pace(3)
    assert [await turns.turn(100) for _ in range(3)] == [0, 0, 0]
    assert moment.slept == []


async def test_the_next_turn_is_a_minute_after_the_first_of_the_last_ones() -> None:
    turns, moment = pace(2)
    for pause in (0, 20, 5):
        moment.now += pause
        await turns.turn(100)
    assert moment.slept == [35.0]
    await turns.turn(100)
    assert moment.slept == [35.0, 20.0]


async def test_a_turn_that_is_too_far_away_is_not_taken() -> None:
    turns, moment = pace(1)
    await turns.turn(0)
    moment.now += 10
    assert [await turns.turn(30), await turns.turn(30)] == [50.0, 50.0]
    moment.now += 30
    assert await turns.turn(30) == 0
    assert moment.slept == [20.0]


async def test_concurrent_calls_get_different_turns() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    turns = Pace(2, clock=lambda: 0.0, sleep=sleep)
    await asyncio.gather(*(turns.turn(1000) for _ in range(6)))
    assert slept == [60.0, 60.0, 120.0, 120.0]


@pytest.mark.requirement("AI-3.6-2")
@given(st.integers(1, 5), st.lists(st.floats(0, 90), max_size=30))
def test_no_minute_has_more(per_minute: int, pauses: list[float]) -> None:
    turns, moment = pace(per_minute)
    given: list[float] = []

    async def take() -> None:
        for pause in pauses:
            moment.now += pause
            assert await turns.turn(1000) == 0
            given.append(moment.now)

    asyncio.run(take())
    for first, later in zip(given, given[per_minute:], strict=False):
        assert later - first >= 60 - 1e-6
