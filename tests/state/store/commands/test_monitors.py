"""A monitor is due at once if what it looks at has changed since, and only then."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.monitors import NoteVersion, WakeMonitors, monitor_key
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

TARGETS = {"a": "chain-1", "b": "chain-2", "c": "agent " + "f" * 64, "d": "server"}


async def fill(store: Store) -> None:
    await store.do(
        *(PutRecord(name, "workflow", "ann", "running", "{}") for name in ("chain-1", "chain-2")),
        *(
            PutRecord(f"monitor-{one}", "monitor", "ann", "active", "{}", monitor_key(one * 32, target, 1), delay=60.0)
            for one, target in TARGETS.items()
        ),
    )


async def fences(store: Store) -> list[int]:
    return [(await store.read(FindRecord(("monitor",), f"monitor-{one}"))).fence for one in TARGETS]


async def test_monitors_of_a_changed_record_are_woken_once(store: Store) -> None:
    await fill(store)
    assert await store.do(WakeMonitors()) == [0]
    await store.do(ChangeRecord("chain-1", ("workflow",), ("running",), "paused"))
    assert [await store.do(WakeMonitors()) for _ in range(2)] == [[1], [0]]
    assert await fences(store) == [1, 0, 0, 0]
    await store.do(
        NoteVersion("monitor-a", monitor_key("a" * 32, "chain-1", 2)),
        ChangeRecord("monitor-a", ("monitor",), ("active",), "active", delay=60.0),
    )
    assert await store.do(WakeMonitors()) == [0]


async def test_monitors_of_agents_are_woken_together(store: Store) -> None:
    await fill(store)
    assert await store.do(WakeMonitors(agents=True)) == [1]
    assert await fences(store) == [0, 0, 1, 0]
