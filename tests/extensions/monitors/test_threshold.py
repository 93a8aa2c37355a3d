"""A threshold fits its events, and is crossed once in each direction or begins to hold once."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.extensions.monitors.conditions import check_threshold, is_beyond, is_news
from bespeak.runtime.expressions.pool import Expressions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("threshold", "events", "fits"),
    [
        (None, ("status_changed",), True),
        (None, ("latency_changed",), False),
        (0.5, ("trust_score_changed",), True),
        (0.5, ("trust_score_changed", "status_changed"), False),
        ({"eq": "failed"}, ("state_changed",), True),
        ({"eq": "failed"}, ("state_changed", "health_changed"), False),
        ({"like": "failed"}, ("state_changed",), False),
    ],
)
async def test_a_threshold_has_to_fit(threshold: Any, events: tuple[str, ...], fits: bool) -> None:
    assert (await check_threshold(threshold, events, Expressions()) is None) is fits


async def test_a_number_is_crossed_both_ways_and_a_condition_begins_to_hold() -> None:
    for threshold, expected in ((5, [False, True, False, True]), ({"gte": 5}, [False, True, False, False])):
        was, told = False, []
        for value in (4, 5, 6, 3):
            now = await is_beyond(threshold, value, None, Expressions())
            assert isinstance(now, bool)
            told.append(is_news(threshold, was=was, now=now))
            was = now
        assert told == expected
