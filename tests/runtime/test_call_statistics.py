"""Calls are counted by endpoint: those that run, those that failed, and how long they took."""

from __future__ import annotations

import pytest
from tests.service import make_endpoint
from tests.stateful import keeping

from bespeak.extensions.monitors.statistics import CallStatistics, Summary

KEY = ("FETCH", "/rates")


def test_nothing_is_known_of_an_endpoint_that_was_not_called() -> None:
    statistics = CallStatistics()
    assert (statistics.find_latency(KEY), statistics.summarize(KEY), statistics.count_running(KEY)) == (
        None,
        Summary(),
        0,
    )


def test_errors_of_the_server_are_failures_and_refusals_are_not() -> None:
    statistics = CallStatistics()
    for seconds, code in ((1.0, 200), (2.0, 422), (3.0, 500), (4.0, 408)):
        statistics.note(KEY, seconds, code)
    assert statistics.summarize(KEY) == Summary(4, 2, 10.0)
    assert statistics.find_latency(KEY) == 2.5
    assert Summary(1, 1, 2.0) + Summary(2, 0, 1.0) == Summary(3, 1, 3.0)


def test_a_call_runs_until_it_ends() -> None:
    statistics = CallStatistics()
    with statistics.running(KEY):
        assert statistics.count_running(KEY) == 1
    assert statistics.count_running(KEY) == 0


def test_endpoints_that_were_called_long_ago_are_forgotten() -> None:
    statistics = CallStatistics()
    for number in range(1500):
        statistics.note(KEY, 1.0, 200)
        statistics.note(("FETCH", f"/{number}"), 1.0, 200)
    assert (statistics.summarize(KEY).calls, statistics.summarize(("FETCH", "/0")).calls) == (256, 0)


@pytest.mark.anyio
async def test_the_calls_of_a_server_are_taken_in() -> None:
    async with keeping(make_endpoint("FETCH", "/rates", lambda _: {}), methods=("MONITOR",)) as bench:
        for _ in range(3):
            await bench.send("FETCH", "/rates")
        await bench.send("FETCH", "/nothing")
        assert bench.bench.server.part("statistics").summarize(KEY).calls == 3
