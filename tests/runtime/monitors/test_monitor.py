"""A monitor is stored and read without loss."""

from __future__ import annotations

from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.monitors.statistics import Summary
from bespeak.runtime.monitors.target import Monitor, Seen, Target, View, decode, encode


def test_a_monitor_is_read_as_it_was_written() -> None:
    monitor = Monitor(
        target=Target("endpoint", "/rates", "FETCH", {"of": "gold"}, "eur"),
        events=("output_changed",),
        callback="a" * 64,
        interval=60.0,
        authority=Authority(agent_id="a" * 64, scopes=("rates:read",), headers={}),
        threshold={"lt": 0.5},
        version=7,
        seen={"output_changed": Seen(0.4, True)},
        views={"p": View(1.0, Summary(3, 1, 0.5))},
    )
    assert decode(encode(monitor)) == monitor
