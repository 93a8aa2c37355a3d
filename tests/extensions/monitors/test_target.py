"""A target is read by its form, and anything else is told what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.monitors.statistics import Summary
from bespeak.extensions.monitors.target import EVENTS, Monitor, MonitorTarget, Seen, View, decode, encode, parse_target
from bespeak.runtime.identity.authority import Authority

AGENT = "a" * 64
NAMES = ("server", "rooms.example")


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        (AGENT, "agent", AGENT),
        ("rooms.example", "server", "server"),
        ("FETCH /rates", "endpoint", "/rates"),
        ({"method": "FETCH", "path": "/rates", "select": "eur"}, "endpoint", "/rates"),
        ("chain-1", "record", "chain-1"),
    ],
)
def test_the_form_of_a_target_says_what_it_is(written: Any, kind: str, name: str) -> None:
    target = parse_target(written, NAMES)
    assert isinstance(target, MonitorTarget)
    assert (target.kind, target.name) == (kind, name)
    assert target.kind in EVENTS


@given(st.text() | st.dictionaries(st.text() | st.sampled_from(["method", "path"]), st.none() | st.text()))
def test_anything_is_a_target_or_a_fault(written: Any) -> None:
    assert isinstance(parse_target(written, NAMES), MonitorTarget | str)


def test_a_monitor_is_read_as_it_was_written() -> None:
    monitor = Monitor(
        target=MonitorTarget("endpoint", "/rates", "FETCH", {"of": "gold"}, "eur"),
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
