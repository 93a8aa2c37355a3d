"""Every driver keeps the same promises: one suite over all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.state.store.sealing import PlainSealer

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.extensions.messages.store import PutOutbox
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.cases import OpenCase
from bespeak.state.store.commands.idempotency import (
    ClaimKey,
    FindKey,
    FinishKey,
    InProgress,
    Recorded,
    RecordKey,
    ReleaseKey,
    UseNonce,
)
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Conflict, Notify, Sealed, Statement, Steps, Store

pytestmark = pytest.mark.anyio


class Put(Command, frozen=True):
    """A change that no driver groups."""

    value: str

    def steps(self) -> Steps:
        yield Statement("INSERT INTO nonces (kind, value, expires) VALUES ('put', ?, 0)", (self.value,))
        yield Notify("puts")
        return self.value


class All(Command, frozen=True):
    """What was put."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT value FROM nonces WHERE kind = 'put' ORDER BY value")
        return [row[0] for row in rows]


class Twice(Command, frozen=True):
    """The same with two questions."""

    def steps(self) -> Steps:
        yield Statement("SELECT count(*) FROM nonces")
        return (yield from All().steps())


class Look(Command, frozen=True):
    """Not grouped, so that a unit with it runs by itself."""

    def steps(self) -> Steps:
        yield Statement("SELECT 1")


class Refuse(Command, frozen=True):
    """Always a conflict."""

    def steps(self) -> Steps:
        yield Statement("SELECT 1")
        return Conflict("no", {"why": "never"})


class Increment(Command, frozen=True):
    """Reads, computes, writes: wrong unless the row is held."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT fence FROM idempotency WHERE scope = 'n' AND key = 'n' {lock}")
        fence = rows[0][0]
        yield Statement("UPDATE idempotency SET fence = ? WHERE scope = 'n' AND key = 'n'", (fence + 1,))
        return fence + 1


class Nonsense(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("SELECT nothing FROM nowhere")


class Broken(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("SELECT 1")
        raise KeyError("mine")


async def audit_of(store: Store) -> list[tuple[str, str]]:
    """Return agent and audit id of each record, in order."""
    return [(row[3], row[4]) for row in await store.read(ScanAudit())]


async def test_unit_returns_the_results_in_order_and_more_commands_follow_from_them(store: Store) -> None:
    assert await store.do(Put("a"), UseNonce("k", "v", 60.0), Put("b")) == ["a", True, "b"]
    assert await store.do() == []
    assert await store.read(All()) == ["a", "b"]
    done = await store.do(Put("c"), then=lambda results: [Put(f"{results[0]}d"), Put("e")])
    assert done == ["c", "cd", "e"]
    assert await store.do(Put("x"), then=lambda _: [Refuse()]) == Conflict("no", {"why": "never"})
    assert await store.do(Put("y"), then=lambda _: []) == ["y"]
    assert await store.read(All()) == ["a", "b", "c", "cd", "e", "y"]


@pytest.mark.parametrize(
    "commands",
    [(Put("a"), Refuse()), (Put("a"), Refuse(), Put("b")), (Refuse(), Put("a")), (AppendAudit("x", {}), Refuse())],
)
async def test_conflict_rolls_back_the_unit(store: Store, commands: Sequence[Command]) -> None:
    assert await store.do(*commands) == Conflict("no", {"why": "never"})
    assert await store.read(All()) == []
    assert await audit_of(store) == []


async def test_guard_rolls_back_earlier_commands(store: Store) -> None:
    await store.do(UseNonce("k", "used", 60.0))
    assert await store.do(PutOutbox("t", "r", "{}"), UseNonce("k", "used", 60.0)) == Conflict("nonce-used")
    assert await store.do(UseNonce("k", "new", 60.0), UseNonce("k", "used", 60.0)) == Conflict("nonce-used")
    assert await store.do(UseNonce("k", "new", 60.0)) == [True]


async def test_error_in_a_unit_rolls_it_back_and_is_a_fault(store: Store) -> None:
    def fail(_: Any) -> list[Command]:
        raise KeyError("mine")

    for attempt in (
        store.do(Put("a"), Nonsense()),
        store.do(Put("a"), Broken()),
        store.do(Put("a"), then=fail),
        store.do(Put("same"), Put("same")),
        store.read(Nonsense()),
    ):
        with pytest.raises(StoreError) as caught:
            await attempt
        assert not isinstance(caught.value, StoreUnavailableError)
    assert await store.read(All()) == []


async def test_a_unit_that_fails_does_not_harm_those_beside_it(store: Store) -> None:
    units = [store.do(Nonsense() if number % 5 == 0 else Put(f"{number:02}")) for number in range(30)]
    results = await asyncio.gather(*units, return_exceptions=True)
    assert [number for number, result in enumerate(results) if isinstance(result, StoreError)] == [0, 5, 10, 15, 20, 25]
    assert await store.read(All()) == [f"{number:02}" for number in range(30) if number % 5]


async def test_a_value_the_database_refuses_does_not_harm_the_units_beside_it(store: Store) -> None:
    units = [store.do(RecordKey("s", f"k{number}", b"", b"", 60.0 if number != 7 else "x")) for number in range(20)]  # type: ignore[arg-type]
    results = await asyncio.gather(*units, return_exceptions=True)
    assert [number for number, result in enumerate(results) if result != [True]] in ([7], [])
    for number in set(range(20)) - {7}:
        assert await store.read(FindKey("s", f"k{number}")) == Recorded(b"", b"")


async def test_reading_cannot_write_and_concurrent_reads_are_allowed(store: Store) -> None:
    for command in (Put("a"), AppendAudit("a", {})):
        with pytest.raises(StoreError):
            await store.read(command)
    assert await store.read(All()) == []
    await store.do(Put("a"))
    assert await asyncio.gather(*(store.read(All()) for _ in range(50))) == [["a"]] * 50


async def test_cancelled_read_does_not_affect_others(store: Store) -> None:
    await store.do(Put("a"))
    for _ in range(5):
        questions = [asyncio.ensure_future(store.read(Twice())) for _ in range(20)]
        await asyncio.wait(questions, return_when=asyncio.FIRST_COMPLETED)
        for question in questions:
            question.cancel()
        await asyncio.gather(*questions, return_exceptions=True)
        assert await store.do(Look(), UseNonce("k", f"{len(await store.read(All()))}", -1.0)) == [None, True]
    assert await asyncio.gather(*(store.read(Twice()) for _ in range(20))) == [["a"]] * 20


async def test_locked_row_is_not_changed_concurrently(first: Store, second: Store) -> None:
    await first.do(RecordKey("n", "n", b"", b"", 60.0))
    await asyncio.gather(*(store.do(Increment()) for _ in range(10) for store in (first, second)))
    assert await first.do(Increment()) == [22]


async def test_watchers_in_every_process_are_notified_after_the_commit(first: Store, second: Store) -> None:
    here, there = asyncio.Event(), asyncio.Event()
    first.watch("puts", here.set)
    second.watch("puts", there.set)
    await first.do(Put("a"))
    await asyncio.wait_for(asyncio.gather(here.wait(), there.wait()), 20)


async def test_watchers_are_notified_of_grouped_commands(store: Store) -> None:
    heard = asyncio.Event()
    store.watch("outbox", heard.set)
    await asyncio.gather(*(store.do(PutOutbox("t", "r", "{}")) for _ in range(5)))
    await asyncio.wait_for(heard.wait(), 20)


async def test_records_are_chained_in_the_order_of_their_commits(store: Store) -> None:
    units = [
        store.do(UseNonce("k", f"{number}", 60.0), AppendAudit(f"agent{number % 3}", {"n": number}))
        for number in range(60)
    ]
    results = await asyncio.gather(*units)
    sealed = [result[1] for result in results if not isinstance(result, Conflict)]
    assert all(isinstance(record, Sealed) for record in sealed)
    records = await audit_of(store)
    assert [audit_id for _, audit_id in records] == [
        record.audit_id for record in sorted(sealed, key=lambda one: one.sequence)
    ]
    assert_chained(records)
    assert [row[2] for row in await store.read(ScanAudit())] == list(range(1, 61))


async def test_refused_unit_leaves_no_gap_in_the_chain(store: Store) -> None:
    await store.do(UseNonce("k", "used", 60.0))
    units = [
        store.do(UseNonce("k", "used" if number % 4 == 2 else f"{number}", 60.0), AppendAudit(f"agent{number % 3}", {}))
        for number in range(40)
    ]
    results = await asyncio.gather(*units)
    assert [number for number, result in enumerate(results) if isinstance(result, Conflict)] == list(range(2, 40, 4))
    rows = await store.read(ScanAudit())
    assert [row[2] for row in rows] == list(range(1, 31))
    assert_chained([(row[3], row[4]) for row in rows])


async def test_records_of_all_kinds_of_units_share_one_order(store: Store) -> None:
    units = []
    for number in range(30):
        entry = AppendAudit("agent", {"n": number})
        units.append(store.do(entry))
        units.append(store.do(Put(f"{number}"), entry))
        units.append(store.do(Put(f"then{number}"), then=lambda _, entry=entry: [entry]))  # type: ignore[misc]
        units.append(store.do(Put(f"not{number}"), entry, Refuse()))
    await asyncio.gather(*units)
    rows = await store.read(ScanAudit())
    assert [row[2] for row in rows] == list(range(1, 91))
    assert_chained([(row[3], row[4]) for row in rows])


async def test_a_chain_goes_on_after_a_restart(shared_place: str) -> None:
    for stream in ("one", "two"):
        store = open_store(shared_place)
        store.attach(PlainSealer(stream))
        await store.start()
        await asyncio.gather(*(store.do(AppendAudit(agent, {})) for agent in ("a", "b")))
        await store.do(AppendAudit("a", {}))
        records = await audit_of(store)
        await store.close()
    assert [audit_id for agent, audit_id in records if agent == "a"] == [
        "one-1<",
        "one-3<one-1",
        "two-1<one-3",
        "two-3<two-1",
    ]


async def test_sealing_without_a_sealer_is_refused(place: str) -> None:
    store = open_store(place)
    await store.start()
    try:
        for commands in ((AppendAudit("a", {}),), (Put("a"), AppendAudit("a", {}))):
            with pytest.raises(StoreError, match="no sealer"):
                await store.do(*commands)
        assert await store.do(Put("a")) == ["a"]
    finally:
        await store.close()


async def test_units_on_one_key_in_one_group_happen_one_after_the_other(store: Store) -> None:
    claimed, recorded, released, used = await asyncio.gather(
        store.do(ClaimKey("s", "k", b"h", 30.0, 60.0)),
        store.do(FinishKey("s", "k", 1, b"answer", 60.0), AppendAudit("a", {})),
        store.do(ReleaseKey("s", "k", 1)),
        store.do(UseNonce("s", "k", 60.0)),
    )
    assert not isinstance(claimed, Conflict)
    assert claimed[0].fence == 1
    found = await store.read(FindKey("s", "k"))
    # Which of the two came first is the store's to choose, not whether the second saw the first.
    assert (found == Recorded(b"h", b"answer")) is not isinstance(recorded, Conflict)
    assert found is None or isinstance(found, Recorded | InProgress)
    assert (released, used) == ([None], [True])


async def test_closing_finishes_running_units_and_refuses_new_ones(shared_place: str) -> None:
    store = open_store(shared_place)
    store.attach(PlainSealer())
    await store.start()
    units = [
        asyncio.ensure_future(store.do(Put(f"{n:02}") if n % 2 else UseNonce("k", f"{n}", 60.0))) for n in range(20)
    ]
    await asyncio.sleep(0)
    await store.close()
    assert Conflict("nonce-used") not in await asyncio.gather(*units)
    for late in (store.do(Put("late")), store.do(UseNonce("k", "late", 60.0))):
        with pytest.raises(StoreUnavailableError):
            await late
    again = open_store(shared_place)
    await again.start()
    assert await again.read(All()) == [f"{n:02}" for n in range(1, 20, 2)]
    await again.close()


async def test_cancelled_waiter_does_not_stop_the_unit(store: Store) -> None:
    heard = asyncio.Event()
    store.watch("puts", heard.set)
    unit = asyncio.ensure_future(store.do(Put("a")))
    await asyncio.sleep(0)
    unit.cancel()
    await asyncio.wait_for(heard.wait(), 20)
    assert await store.read(All()) == ["a"]


def assert_chained(records: list[tuple[str, str]]) -> None:
    heads: dict[str, str] = {}
    for agent, audit_id in records:
        own, _, previous = audit_id.partition("<")
        assert previous == heads.get(agent, "")
        heads[agent] = own


async def test_watchers_are_notified_before_the_caller_gets_its_result(store: Store) -> None:
    """Otherwise what a process remembers could be served after it was changed and acknowledged."""
    heard: list[str] = []
    store.watch("cases", lambda: heard.append("cases"))
    await store.do(OpenCase("c1", "escalation", "a" * 64, "operator", "digest", "{}"))
    assert heard[:1] == ["cases"]
