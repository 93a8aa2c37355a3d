"""A monitor is due at once if what it looks at has changed since, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.extensions.monitors.store import (
    FAILED,
    KEPT_CALL,
    REPEATING,
    SCHEDULED,
    SUCCEEDED,
    KeepCall,
    NoteVersion,
    PutMonitor,
    ReleaseCalls,
    WakeMonitors,
)
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, FindRecord, ListRecords, PutRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

TARGETS = {
    "a": ("record", "chain-1"),
    "b": ("record", "chain-2"),
    "c": ("agent", "f" * 64),
    "d": ("server", "server"),
}


async def fill(store: Store) -> None:
    await store.do(
        *(PutRecord(name, "workflow", "ann", "running", "{}") for name in ("chain-1", "chain-2")),
        *(
            PutMonitor(PutRecord(f"monitor-{one}", "monitor", "ann", "active", "{}", delay=60.0), *target, 1)
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
        NoteVersion("monitor-a", 2),
        ChangeRecord("monitor-a", ("monitor",), ("active",), "active", delay=60.0),
    )
    assert await store.do(WakeMonitors()) == [0]


async def test_monitors_of_agents_are_woken_together(store: Store) -> None:
    await fill(store)
    assert await store.do(WakeMonitors(agents=True)) == [1]
    assert await fences(store) == [0, 0, 1, 0]


async def keep(store: Store, digest: str, state: str, record: str = "call-1", **fields: Any) -> bool:
    command = KeepCall(
        record, "agent", f"{record} {digest}", state, f'"{digest}"', lifetime=60.0, **{"most": 10, **fields}
    )
    done = await store.do(command)
    kept: bool = done[0]
    return kept


async def kept(store: Store) -> tuple[str, str]:
    record = await store.read(FindRecord((KEPT_CALL,), "call-1"))
    return record.content(), record.state


async def test_a_success_replaces_a_failure_of_the_same_call_only(store: Store) -> None:
    await keep(store, "a", FAILED)
    assert not await keep(store, "b", SUCCEEDED)
    assert await kept(store) == ("a", FAILED)
    assert await keep(store, "a", SUCCEEDED)
    assert await keep(store, "b", SUCCEEDED)
    assert await kept(store) == ("b", SUCCEEDED)


async def test_a_later_failure_replaces_an_earlier_one_unless_that_is_scheduled(store: Store) -> None:
    await keep(store, "a", FAILED)
    assert await keep(store, "b", FAILED)
    await store.do(ChangeRecord("call-1", (KEPT_CALL,), (FAILED,), SCHEDULED, delay=60.0))
    assert not await keep(store, "c", FAILED)
    assert await keep(store, "b", SUCCEEDED)
    assert await kept(store) == ("b", SUCCEEDED)


async def test_the_oldest_call_makes_room(store: Store) -> None:
    for number in range(4):
        await keep(store, "a", FAILED, f"call-{number}", most=3)
    listed = await store.read(ListRecords(KEPT_CALL))
    assert [record.record_id for record in listed] == ["call-1", "call-2", "call-3"]


async def test_a_call_may_be_scheduled_when_it_is_kept(store: Store) -> None:
    await keep(store, "a", SCHEDULED, delay=-1.0)
    done: Any = await store.do(ClaimDue(KEPT_CALL, 1, 30.0))
    assert [record.record_id for record in done[0]] == ["call-1"]
    await keep(store, "a", SUCCEEDED)
    assert (await store.read(FindRecord((KEPT_CALL,), "call-1"))).due is None


async def test_interrupted_repetitions_are_due_at_once_and_no_others(store: Store) -> None:
    for record, state in (("call-1", REPEATING), ("call-2", SCHEDULED)):
        await keep(store, "a", FAILED, record)
        await store.do(ChangeRecord(record, (KEPT_CALL,), (FAILED,), state, delay=60.0))
    done: Any = await store.do(ReleaseCalls())
    assert done[0] == 1
    done = await store.do(ClaimDue(KEPT_CALL, 9, 30.0))
    assert [record.record_id for record in done[0]] == ["call-1"]
