"""The SQLite store: its guarantees under faults of the file and of the process."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.store.process import run, running

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.commands.idempotency import Claimed, ClaimKey, UseNonce
from bespeak.state.store.settings import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Notify, Statement, Steps, Store

pytestmark = pytest.mark.anyio


class Put(Command, frozen=True):
    """Set a name to a number."""

    name: str
    number: float

    def steps(self) -> Steps:
        yield Statement(
            "INSERT INTO nonces (kind, value, expires) VALUES ('k', ?, ?) "
            "ON CONFLICT (kind, value) DO UPDATE SET expires = excluded.expires",
            (self.name, self.number),
        )
        return self.number


class Take(Command, frozen=True):
    """Remove a name; a conflict if it is not there."""

    guards: ClassVar[bool] = True
    name: str

    def steps(self) -> Steps:
        rows = yield Statement("DELETE FROM nonces WHERE kind = 'k' AND value = ? RETURNING expires", (self.name,))
        return rows[0][0] if rows else Conflict("missing")


class Break(Command, frozen=True):
    """An error of the database."""

    def steps(self) -> Steps:
        yield Statement("INSERT INTO nonces VALUES (NULL, NULL, NULL)")


class All(Command, frozen=True):
    """Every name with its number."""

    def steps(self) -> Steps:
        return dict((yield Statement("SELECT value, expires FROM nonces WHERE kind = 'k'")))


class CountTwice(Command, frozen=True):
    """Counts, lets something happen, and counts again."""

    between: Callable[[], object]

    def steps(self) -> Steps:
        first = yield Statement("SELECT count(*) FROM nonces")
        self.between()
        second = yield Statement("SELECT count(*) FROM nonces")
        return first[0][0], second[0][0]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "s.db"), durability="process")
    await opened.start()
    yield opened
    await opened.close()


async def test_all_statements_of_a_read_see_one_state(store: SqliteStore, tmp_path: Path) -> None:
    def write() -> None:
        other = sqlite3.connect(tmp_path / "s.db")
        with other:
            other.execute("INSERT INTO nonces VALUES ('k', 'x', 0)")
        other.close()

    assert await store.read(CountTwice(write)) == (0, 0)
    assert await store.read(CountTwice(lambda: None)) == (1, 1)


async def test_committed_changes_are_seen_by_every_kind_of_read_and_reading_cannot_write(store: SqliteStore) -> None:
    await store.do(Put("a", 1))
    assert store.look(All()) == await store.read(All()) == {"a": 1}
    with pytest.raises(StoreError, match=r"readonly|read-only"):
        await store.read(Put("b", 1))
    with pytest.raises(StoreError, match=r"readonly|read-only"):
        store.look(Put("b", 1))
    assert await store.read(All()) == {"a": 1}


async def test_concurrent_reads_survive_an_invalid_statement(store: SqliteStore) -> None:
    class Nonsense(Command, frozen=True):
        def steps(self) -> Steps:
            yield Statement("SELECT nothing FROM nowhere")

    await store.do(Put("a", 1))
    found = await asyncio.gather(
        *(store.read(Nonsense() if number % 2 else All()) for number in range(50)), return_exceptions=True
    )
    assert [type(outcome) for outcome in found[1::2]] == [StoreError] * 25
    assert found[::2] == [{"a": 1}] * 25


async def test_store_in_memory_lives_as_long_as_its_process() -> None:
    one, other = SqliteStore.in_memory(), SqliteStore.in_memory()
    try:
        assert one.sole
        await one.do(Put("a", 1))
        assert one.look(All()) == await one.read(All()) == {"a": 1}
        assert await other.read(All()) == {}
    finally:
        await one.close()
        await other.close()


async def test_changes_of_other_processes_are_distinguished_from_own_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.store.sqlite.POLL_SECONDS", 0.01)
    server = open_store(str(tmp_path / "s.db"), role="sole")
    visitor = open_store(str(tmp_path / "s.db"))
    heard: list[str] = []
    noticed = asyncio.Event()
    server.watch("agents", lambda: (heard.append("agents"), noticed.set()))  # type: ignore[func-returns-value]
    await server.start()
    try:
        for number in range(20):
            await server.do(Put("own", number))
            await asyncio.sleep(0.002)
        assert heard == []
        await visitor.do(
            Put("a", 1),
        )
        await asyncio.wait_for(noticed.wait(), 10)
    finally:
        await visitor.close()
        await server.close()


async def test_a_change_of_another_process_right_after_the_start_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.store.sqlite.POLL_SECONDS", 0.01)
    server = open_store(str(tmp_path / "s.db"))
    visitor = open_store(str(tmp_path / "s.db"))
    noticed = asyncio.Event()
    server.watch("agents", noticed.set)
    await server.start()
    try:
        # In another thread, so that the loop does not look for changes in the meantime.
        visiting = threading.Thread(target=lambda: asyncio.run(put_once(visitor)))
        visiting.start()
        visiting.join()
        await asyncio.wait_for(noticed.wait(), 10)
    finally:
        await visitor.close()
        await server.close()


async def put_once(store: Store) -> None:
    await store.do(Put("a", 1))


async def test_a_store_that_is_closed_is_one_file(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "s.db"))
    await store.start()
    await store.do(Put("a", 1))
    await store.read(All())
    await store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


async def test_damaged_page_at_run_time_is_an_outage_only_for_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    store = SqliteStore(str(path))
    for first in range(0, 2000, 100):
        await store.do(*(Put(f"{number:06}" + "x" * 200, number) for number in range(first, first + 100)))
    await store.close()
    content = bytearray(path.read_bytes())
    places = [at for at in range(0, len(content), 4096) if b"xxxxxxxx" in content[at : at + 4096]]
    for at in places[5:-5]:
        content[at : at + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    monkeypatch.setattr(
        "bespeak.state.store.sqlite_file._CHECKED_BYTES", 0
    )  # as if it were too large to be looked through
    store = SqliteStore(str(path))
    try:
        with pytest.raises(StoreUnavailableError, match=r"is damaged .*bespeak store check"):
            await store.read(All())
        with pytest.raises(StoreUnavailableError, match="is damaged"):
            await store.do(Put(f"{1000:06}" + "x" * 200, 0))
        spoiled = Put(f"{1000:06}" + "x" * 200, 0)
        claims = [ClaimKey("a", f"{number}", b"", 1, 60) for number in range(3)]
        outcomes = await asyncio.gather(
            *(store.do(command) for claim in claims for command in (spoiled, claim)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes[::2]] == [StoreUnavailableError] * 3
        assert outcomes[1::2] == [[Claimed(1)]] * 3
        # Once by what reads, once by what writes.
        assert [record.name for record in caplog.records] == [
            "bespeak.state.store.sqlite",
            "bespeak.state.store.sqlite",
        ]
    finally:
        await store.close()


HOLD = """
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.process
async def test_file_locked_too_long_by_another_process_is_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.store.sqlite_file.BUSY_SECONDS", 0.05)
    store = SqliteStore(str(tmp_path / "s.db"))
    try:
        with running(HOLD, tmp_path / "s.db"):
            with pytest.raises(StoreUnavailableError, match="was locked by another process"):
                await store.do(Put("a", 1))
            assert await store.read(All()) == {}, "reading waits for nobody"
        assert await store.do(Put("a", 1)) == [1]
    finally:
        await store.close()


FILL = """
async def main():
    store = open_store(sys.argv[1], role="sole")
    await store.start()
    async def use(number):
        try:
            await store.do(UseNonce("k", f"{number:06}" + "x" * 500, 3600))
            return number
        except StoreUnavailableError as error:
            words.add(str(error))
    words = set()
    await use(0)
    used = os.path.getsize(sys.argv[1] + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (used + 100_000, resource.RLIM_INFINITY))
    kept = [number for number in [await use(number) for number in range(1, 400)] if number is not None]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    later = [await use(number) for number in range(1000, 1100)]
    assert len(words) == 1, words
    print(words.pop()); print(kept); print(later, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.process
async def test_acknowledged_changes_around_a_full_disk_survive_a_kill(
    tmp_path: Path,
) -> None:
    done = run(FILL, tmp_path / "s.db")
    words, kept, later = done.stdout.splitlines()
    assert "could not be read or written" in words or "no space left" in words
    acknowledged = {0, *json.loads(kept), *json.loads(later)}
    assert 0 < len(json.loads(kept)) < 399
    assert len(acknowledged) == 1 + len(json.loads(kept)) + 100
    store = open_store(str(tmp_path / "s.db"), role="sole")
    try:
        for number in range(1100):
            outcome = await store.do(UseNonce("k", f"{number:06}" + "x" * 500, 3600))
            assert (outcome != [True]) == (number in acknowledged)
    finally:
        await store.close()


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can be mounted by root only")
async def test_full_file_system_is_an_outage_without_loss(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        store = open_store(str(small / "s.db"), role="sole")
        ballast = small / "ballast"
        ballast.write_bytes(b"x" * 500_000)
        kept: dict[str, float] = {}

        async def fill() -> None:
            for number in range(1000):
                await store.do(Put(f"{number}" + "x" * 500, number))
                kept[f"{number}" + "x" * 500] = number

        with pytest.raises(StoreUnavailableError, match=r"no space left|could not be read or written"):
            await fill()
        assert await store.read(All()) == kept
        ballast.unlink()
        await store.do(Put("again", 1))
        assert await store.read(All()) == kept | {"again": 1}
        await store.close()
    finally:
        subprocess.run(["umount", "-l", small], check=True)


UNITS = st.lists(
    st.tuples(
        st.lists(
            st.one_of(
                st.tuples(st.sampled_from("abcd"), st.integers(0, 9)).map(lambda pair: Put(*pair)),
                st.sampled_from("abcd").map(Take),
                st.just(Break()),
            ),
            max_size=4,
        ),
        st.sampled_from([None, "copy", "take"]),
    ),
    max_size=30,
)


def follow(kind: str | None) -> Any:
    if kind == "copy":
        return lambda results: [Put("copy", len(results))]
    return (lambda _: [Take("copy")]) if kind == "take" else None


def expected(model: dict[str, float], commands: list[Command], kind: str | None) -> Any:
    """Apply a unit to a dictionary, which changes only if the unit succeeds."""
    trial, results = dict(model), []
    for step in range(2):
        then = follow(kind)
        for command in commands if step == 0 else (then(results) if then else ()):
            if isinstance(command, Put):
                trial[command.name] = command.number
                results.append(command.number)
            elif isinstance(command, Take):
                if command.name not in trial:
                    return Conflict("missing")
                results.append(trial.pop(command.name))
            else:
                return StoreError
    model.clear()
    model.update(trial)
    return results


@settings(max_examples=60, deadline=None)
@given(UNITS)
def test_random_units_change_a_store_like_a_dictionary(
    units: list[tuple[list[Command], str | None]],
) -> None:
    async def use() -> None:
        store = SqliteStore.in_memory()
        try:
            outcomes = await asyncio.gather(
                *(store.do(*commands, then=follow(kind)) for commands, kind in units), return_exceptions=True
            )
            model: dict[str, float] = {}
            wanted = [expected(model, commands, kind) for commands, kind in units]
            assert [type(outcome) if isinstance(outcome, Exception) else outcome for outcome in outcomes] == wanted
            assert await store.read(All()) == model
        finally:
            await store.close()

    asyncio.run(use())


async def test_topics_are_notified_in_the_loop_after_the_commit(store: SqliteStore) -> None:
    class Tell(Command, frozen=True):
        def steps(self) -> Steps:
            yield Statement("INSERT INTO nonces VALUES ('k', 'told', 1)")
            yield Notify("topic")

    seen: list[Any] = []
    told = asyncio.Event()
    store.watch("topic", lambda: (seen.append(store.look(All())), told.set()))  # type: ignore[func-returns-value]
    await store.do(Tell())
    await told.wait()
    assert seen == [{"told": 1}]
