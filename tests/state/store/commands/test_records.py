"""Records have one owner, change from the states that a change names, and are claimed by one process when due."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.state.store.single import only

from bespeak.extensions.workflows.store import JournalSteps, ReadSteps, StepRow
from bespeak.state.store.commands.records import (
    ChangeRecord,
    ClaimDue,
    CountOpen,
    CountRecords,
    ExpireRecord,
    FindAnyRecord,
    FindNamed,
    FindRecord,
    KindCount,
    ListRecords,
    NextDue,
    PutRecord,
    Record,
    RemoveRecord,
)
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio


async def put(store: Store, name: str, owner: str = "ann", **fields: Any) -> Record:
    record: Record = await only(store, PutRecord(name, "alert", owner, "open", '{"n": 1}', **fields))
    return record


def change(name: str, *allowed: str, **fields: Any) -> ChangeRecord:
    return ChangeRecord(name, ("alert",), allowed or ("open",), fields.pop("state", "closed"), **fields)


async def test_record_is_found_by_id_and_key_which_are_taken_once(store: Store) -> None:
    record = await put(store, "a1", key="door")
    assert (record.version, record.content(), record.due) == (1, {"n": 1}, None)
    assert await store.read(FindRecord(("alert",), "a1")) == record
    assert await store.read(FindRecord(("alert",), key="door")) == record
    assert await store.read(FindRecord(("grant",), "a1")) is None
    await put(store, "a1", key="door")
    taken = Conflict("exists", {"record_id": "a1", "owner": "ann"})
    assert await put(store, "a1", "bob") == taken
    assert await put(store, "a2", "bob", key="door") == taken


async def test_a_key_or_a_task_id_means_the_records_of_one_owner(store: Store) -> None:
    for record_id, kind, owner, key, task in (
        ("a", "grant", "ann", "k-1", "task-1"),
        ("b", "grant", "ann", None, "task-1"),
        ("c", "monitor", "ann", None, "task-1"),
        ("d", "grant", "bob", "k-2", "task-1"),
    ):
        await only(store, PutRecord(record_id, kind, owner, "live", "{}", key=key, target=task))
    await only(store, PutRecord("e", "grant", "ann", "live", "{}", target="task-1", lifetime=-1.0))
    for name, found in (("task-1", ["a", "b"]), ("k-1", ["a"]), ("k-2", []), ("task-2", [])):
        named = await store.read(FindNamed(("grant", "delegation"), "ann", name))
        assert [record.record_id for record in named] == found


async def test_the_key_of_a_record_that_has_expired_is_free(store: Store) -> None:
    await put(store, "a1", key="door", lifetime=-1.0)
    assert (await put(store, "a2", "bob", key="door")).record_id == "a2"


async def test_owner_has_a_bounded_number_of_records(store: Store) -> None:
    await put(store, "a1", most=1)
    assert await put(store, "a2", most=1) == Conflict("too-many", {"most": 1})
    assert isinstance(await put(store, "b1", "bob", most=1), Record)


async def test_what_is_due_of_an_owner_is_counted_up_to_a_limit(store: Store) -> None:
    for number in range(3):
        record = await put(store, f"a{number}", delay=60.0)
    await put(store, "b1", "bob", delay=60.0)
    assert [await store.read(CountOpen(record.kind, record.owner, most)) for most in (2, 9)] == [2, 3]
    await only(store, change("a2"))
    assert await store.read(CountOpen(record.kind, record.owner, 9)) == 2


async def test_a_change_needs_owner_state_and_version(store: Store) -> None:
    await put(store, "a1")
    assert await only(store, change("a1", owner="bob")) == Conflict("not-found")
    assert await only(store, change("a2")) == Conflict("not-found")
    wrong = {"state": "open", "kind": "alert", "version": 1}
    assert await only(store, change("a1", "paused")) == Conflict("state", wrong)
    assert await only(store, change("a1", version=2)) == Conflict("version", wrong)
    changed = await only(store, change("a1", owner="ann", version=1, data="{}", new_owner="bob"))
    assert (changed.state, changed.version, changed.data, changed.owner) == ("closed", 2, "{}", "bob")


async def test_records_are_listed_by_kind_owner_and_state_in_pages(store: Store) -> None:
    for name, owner in (("r1", "ann"), ("r2", "bob"), ("r3", "ann")):
        await put(store, name, owner)
    await only(store, change("r3"))

    async def names(**fields: Any) -> list[str]:
        return [record.record_id for record in await store.read(ListRecords("alert", **fields))]

    assert await names() == ["r1", "r2", "r3"]
    assert await names(owner="ann") == ["r1", "r3"]
    assert await names(owner="ann", states=("open",)) == ["r1"]
    first = (await store.read(ListRecords("alert", limit=1)))[0]
    assert await names(after=(first.created, first.record_id)) == ["r2", "r3"]


async def test_what_is_due_is_claimed_once_and_in_order(store: Store) -> None:
    await put(store, "second", delay=-1.0)
    await put(store, "first", due=1.0)
    await put(store, "later", delay=60.0)
    claimed = await only(store, ClaimDue("alert", 10, 30.0))
    assert [record.record_id for record in claimed] == ["first", "second"]
    assert await only(store, ClaimDue("alert", 10, 30.0)) == []
    assert await only(store, ClaimDue("other", 10, 30.0)) == []
    due = await store.read(NextDue(("other", "alert")))
    assert list(due) == ["alert"]
    assert 20 < due["alert"] <= 30


async def test_a_claim_that_another_one_has_followed_is_void(store: Store) -> None:
    await put(store, "a1", delay=-1.0)
    [old] = await only(store, ClaimDue("alert", 1, -1.0))
    [new] = await only(store, ClaimDue("alert", 1, 30.0))
    lost = await only(store, change("a1", fence=old.fence))
    assert lost.reason == "claim-lost"
    assert (await only(store, change("a1", fence=new.fence))).due is None


async def test_an_expired_record_is_gone_and_a_removed_one_too(store: Store) -> None:
    await put(store, "old", lifetime=-1.0)
    await put(store, "new")
    assert await store.read(FindRecord(("alert",), "old")) is None
    assert [await only(store, RemoveRecord("new")), await only(store, RemoveRecord("new"))] == [True, False]


async def test_watchers_of_a_kind_and_of_what_is_due_are_told(store: Store) -> None:
    heard: list[str] = []
    store.watch("records alert", lambda: heard.append("alert"))
    store.watch("records", lambda: heard.append("due"))
    await put(store, "a1")
    await put(store, "a2", delay=60.0)
    await told(heard, "alert")
    assert "due" not in heard, "whoever waits for what is due looks again within a minute"
    await put(store, "a3", delay=1.0)
    await told(heard, "due")


async def told(heard: list[str], what: str) -> None:
    async with asyncio.timeout(10):
        while what not in heard:
            await asyncio.sleep(0.01)


async def record_survey_put(store: Store, name: str, kind: str, state: str = "open", **fields: Any) -> None:
    await store.do(PutRecord(name, kind, "ann", state, "{}", **fields))


async def test_records_are_counted_by_kind_and_state(store: Store) -> None:
    for name, kind, state in (("a", "alert", "open"), ("b", "alert", "open"), ("c", "alert", "shut"), ("d", "x", "y")):
        await record_survey_put(store, name, kind, state)
    await record_survey_put(store, "e", "alert", lifetime=-1.0)
    expected = [KindCount("alert", "open", 2), KindCount("alert", "shut", 1), KindCount("x", "y", 1)]
    assert await store.read(CountRecords()) == expected


async def test_an_expired_record_is_neither_found_nor_due_and_is_purged_with_its_steps(store: Store) -> None:
    await record_survey_put(store, "chain-1", "workflow", "running", delay=0.0)
    await store.do(JournalSteps("chain-1", 0, (StepRow(1, 1, "done", 200, "{}"),), 0.0))
    assert await store.do(ExpireRecord("chain-1"), ExpireRecord("other")) == ["workflow", None]
    assert await store.read(FindRecord(("workflow",), "chain-1")) is None
    kept = await store.read(FindAnyRecord("chain-1"))
    assert (kept.kind, kept.due) == ("workflow", None)
    assert isinstance(await store.do(JournalSteps("chain-1", 0, (), 1.0)), Conflict)
    await store.do(PurgeExpired())
    assert (await store.read(FindAnyRecord("chain-1")), await store.read(ReadSteps("chain-1"))) == (None, [])
