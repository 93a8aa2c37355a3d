"""Group commit: units that wait together are committed together, and no unit suffers for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.state.store.sealing import PlainSealer

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.sqlite import GROUP, SqliteStore, Writer
from bespeak.state.store.sqlite_file import open_writer
from bespeak.state.store.store import Command, Conflict, Notify, Statement, Steps, Unit

pytestmark = pytest.mark.anyio

PUT = "INSERT INTO nonces (kind, value, expires) VALUES (?, ?, 0)"


class Put(Command, frozen=True):
    """Insert a row; a second one of the same name is an error of the database."""

    value: str

    def steps(self) -> Steps:
        yield Statement(PUT, ("k", self.value))
        return self.value


class PutThenRefuse(Command, frozen=True):
    """Writes, and only then finds out that it must not."""

    guards: ClassVar[bool] = True
    value: str

    def steps(self) -> Steps:
        yield Statement(PUT, ("k", self.value))
        yield Notify("refused")
        return Conflict("late")


class Refuse(Command, frozen=True):
    guards: ClassVar[bool] = True

    def steps(self) -> Steps:
        yield Statement("SELECT 1")
        return Conflict("refused")


class Ask(Command, frozen=True):
    sql: str

    def steps(self) -> Steps:
        return (yield Statement(self.sql))


class Names(Command, frozen=True):
    """The rows there are, in the order they were written."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT value FROM nonces WHERE kind = 'k'")
        return {row[0] for row in rows}


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    opened = SqliteStore(str(tmp_path / "s.db"), durability="process")
    opened.attach(PlainSealer())
    await opened.start()
    yield opened
    await opened.close()


class Together:
    """What is asked for in one turn of the loop becomes one group."""

    async def __aenter__(self) -> list[Any]:
        self.waiting: list[Any] = []
        return self.waiting

    async def __aexit__(self, *_: object) -> None:
        self.waiting[:] = await asyncio.gather(*self.waiting, return_exceptions=True)


async def test_units_that_wait_together_share_one_transaction_and_keep_their_order(store: SqliteStore) -> None:
    async with Together() as group:
        group += [store.do(UseNonce("same", "v", 60)) for _ in range(3)]
        group += [store.do(Ask("SELECT count(*) FROM nonces")) for _ in range(2)]
    assert group == [[True], Conflict("nonce-used"), Conflict("nonce-used"), [[(1,)]], [[(1,)]]]


async def test_a_unit_the_database_refuses_does_not_harm_its_neighbours(store: SqliteStore) -> None:
    async with Together() as group:
        group += [store.do(Put("a")), store.do(Put("b"), Put("a")), store.do(Put("c"))]
    assert group[0] == ["a"]
    assert isinstance(group[1], StoreError)
    assert not isinstance(group[1], StoreUnavailableError)
    assert "UNIQUE constraint failed" in str(group[1])
    assert group[2] == ["c"]
    assert await store.read(Names()) == {"a", "c"}


@pytest.mark.parametrize("sql", ["SELECT nothing FROM nowhere", "no SQL at all", "SELECT zeroblob(-1) + ?"])
async def test_invalid_statement_fails_alone(store: SqliteStore, sql: str) -> None:
    async with Together() as group:
        group += [store.do(Put("a")), store.do(Put("b"), Ask(sql)), store.do(Put("c"))]
    assert group[0] == ["a"]
    assert type(group[1]) is StoreError
    assert group[2] == ["c"]
    assert await store.read(Names()) == {"a", "c"}


async def test_values_that_no_column_takes_fail_alone(store: SqliteStore) -> None:
    class PutAny(Command, frozen=True):
        value: Any

        def steps(self) -> Steps:
            yield Statement(PUT, ("k", self.value))

    async with Together() as group:
        group += [store.do(Put("a")), store.do(PutAny(1 << 80)), store.do(PutAny(object())), store.do(PutAny("\ud800"))]
    assert group[0] == ["a"]
    assert [type(outcome) for outcome in group[1:]] == [StoreError] * 3


@pytest.mark.parametrize("late", [(Put("x"), Refuse()), (PutThenRefuse("x"),), (Put("x"), PutThenRefuse("y"))])
async def test_conflict_rolls_back_only_its_unit(store: SqliteStore, late: tuple[Command, ...]) -> None:
    async with Together() as group:
        group += [store.do(Put("a")), store.do(*late), store.do(Put("c"))]
    assert group[0] == ["a"]
    assert isinstance(group[1], Conflict)
    assert group[2] == ["c"]
    assert await store.read(Names()) == {"a", "c"}


async def test_more_commands_can_follow_from_the_results_of_the_first_in_the_same_transaction(
    store: SqliteStore,
) -> None:
    assert await store.do(Put("a"), then=lambda results: [Put(results[0] + "b")]) == ["a", "ab"]
    assert isinstance(await store.do(Put("c"), then=lambda _: [Put("d"), Refuse()]), Conflict)
    assert await store.read(Names()) == {"a", "ab"}


async def test_error_while_making_more_commands_rolls_back_the_unit(store: SqliteStore) -> None:
    def fail(_: Sequence[Any]) -> Sequence[Command]:
        raise ValueError("no such thing")

    with pytest.raises(StoreError, match="the store failed: no such thing"):
        await store.do(Put("a"), then=fail)
    assert await store.read(Names()) == set()


async def chain(store: SqliteStore) -> list[str]:
    return [row[4] for row in await store.read(ScanAudit())]


@pytest.mark.parametrize(
    "unit", [(AppendAudit("agent", {}), Put("a")), (AppendAudit("agent", {}), Refuse()), (Put("b"), PutThenRefuse("c"))]
)
async def test_record_of_a_rolled_back_unit_leaves_no_gap_in_the_chain(
    store: SqliteStore, unit: tuple[Command, ...]
) -> None:
    await store.do(Put("a"))
    async with Together() as group:
        group += [
            store.do(AppendAudit("agent", {"n": 1})),
            store.do(*unit),
            store.do(AppendAudit("agent", {"n": 2})),
        ]
    assert isinstance(group[1], Conflict | StoreError)
    await store.do(AppendAudit("agent", {"n": 3}))
    assert await chain(store) == ["plain-1<", "plain-2<plain-1", "plain-3<plain-2"]


async def test_sealing_needs_a_sealer(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    try:
        with pytest.raises(StoreError, match="no sealer is attached"):
            await store.do(AppendAudit("agent", {}))
    finally:
        await store.close()


async def test_watchers_are_notified_of_committed_changes_only(store: SqliteStore) -> None:
    class Tell(Command, frozen=True):
        def steps(self) -> Steps:
            yield Notify("told")

    heard: list[str] = []
    told = asyncio.Event()
    store.watch("refused", lambda: heard.append("refused"))
    store.watch("told", lambda: (heard.append("told"), told.set()))  # type: ignore[func-returns-value]
    async with Together() as group:
        group += [store.do(Tell()), store.do(PutThenRefuse("x")), store.do(Tell(), Put("a"), Put("a"))]
    await told.wait()
    assert heard == ["told"]


async def test_a_long_queue_is_committed_in_groups_of_a_bounded_size(store: SqliteStore) -> None:
    async with Together() as group:
        group += [store.do(Put(str(number))) for number in range(3 * GROUP)]
    assert group == [[str(number)] for number in range(3 * GROUP)]


async def test_closing_finishes_queued_units_and_refuses_new_ones(store: SqliteStore) -> None:
    waiting = [asyncio.ensure_future(store.do(Put(str(number)))) for number in range(1000)]
    await asyncio.sleep(0)
    await store.close()
    assert [await unit for unit in waiting] == [[str(number)] for number in range(1000)]
    with pytest.raises(StoreUnavailableError, match="is closed"):
        await store.do(Put("late"))
    await store.close()


async def test_cancelled_waiter_is_skipped(store: SqliteStore) -> None:
    async with Together() as group:
        gone = asyncio.ensure_future(store.do(Put("a")))
        await asyncio.sleep(0)
        gone.cancel()
        group += [store.do(Put("b"))]
    assert group == [["b"]]
    # It was asked for, and nobody took it back.
    assert await store.read(Names()) == {"a", "b"}


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_closed_event_loop_does_not_stop_the_writer(tmp_path: Path, turns: int) -> None:
    path = str(tmp_path / "s.db")
    writer = Writer(path, open_writer(path, "process"), lambda _: None)
    gone = asyncio.new_event_loop()

    def leave() -> None:
        writer.put(Unit((Put("a"),), None, gone.create_future()))

    # The loop stops before it runs the statements, after that, or after it was told.
    gone.call_soon(leave)
    for _ in range(turns + 1):
        gone.call_soon(gone.stop)
        gone.run_forever()
    gone.close()

    async def use() -> Any:
        future = asyncio.get_running_loop().create_future()
        writer.put(Unit((Put("b"),), None, future))
        return await asyncio.wait_for(future, 10)

    try:
        assert asyncio.run(use()) == ["b"]
    finally:
        writer.close()


def test_queued_units_are_carried_out_after_their_loop_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    writer = Writer(path, open_writer(path, "process"), lambda _: None)
    gone = asyncio.new_event_loop()
    gone.call_soon(lambda: writer.put(Unit((Put("a"),), None, gone.create_future())))
    gone.call_soon(gone.stop)
    gone.run_forever()
    gone.close()
    writer.close()
    connection = open_writer(path, "process")
    assert connection.execute("SELECT value FROM nonces").fetchall() == [("a",)]
    connection.close()


class Limit(Command, frozen=True):
    """As a full disk does, keep the file from growing."""

    pages: int

    def steps(self) -> Steps:
        return (yield Statement(f"PRAGMA max_page_count = {self.pages}"))


async def test_full_disk_is_logged_once_and_ends_when_there_is_space(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    await store.do(Limit(1))  # it cannot be smaller than the file is
    kept: set[str] = set()
    refused: dict[str, str] = {}
    for number in range(200):
        name = f"{number}" + "x" * 1000
        try:
            await store.do(Put(name))
            kept.add(name)
        except StoreUnavailableError as error:
            refused[name] = str(error)
    assert {text.partition("s.db ")[2] for text in refused.values()} == {
        "has no space left (database or disk is full). Free some space."
    }
    assert await store.read(Names()) == kept
    await store.do(Ask("SELECT 1"))
    assert [record.levelname for record in caplog.records if "no space left" in record.message] == ["ERROR"]
    assert not [record for record in caplog.records if "works again" in record.message]
    await store.do(Limit(1 << 30))
    for name in refused:
        await store.do(Put(name))
    assert await store.read(Names()) == kept | refused.keys()
    assert caplog.messages[-1].endswith("works again.")


async def test_file_error_gives_each_unit_of_a_group_its_own_exception(store: SqliteStore) -> None:
    await store.do(Limit(1))
    async with Together() as group:
        group += [store.do(Put(f"{number}" + "x" * 4000)) for number in range(100)]
    assert {type(outcome) for outcome in group} == {StoreUnavailableError}
    assert len({id(outcome) for outcome in group}) == 100
    assert await store.read(Names()) == set()


async def test_failed_writer_thread_blocks_no_caller(tmp_path: Path) -> None:
    """Check that after any error in a commit its callers get the error and the next group is carried out."""

    class Forgetful(PlainSealer):
        kept = 0

        def keep(self) -> None:
            self.kept += 1
            if self.kept == 1:
                raise RuntimeError("no room for the head")

    store = SqliteStore(str(tmp_path / "s.db"))
    store.attach(Forgetful())
    await store.start()
    with pytest.raises(StoreError):
        await store.do(UseNonce("n", "first", 10.0))
    assert await store.do(UseNonce("n", "second", 10.0)) == [True]
    await store.close()
