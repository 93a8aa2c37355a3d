"""A store as a file and back: nothing lost, nothing doubled, and a file that is not whole changes nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import ClaimKey, FindKey, FinishKey, Recorded, UseNonce
from bespeak.state.store.settings import open_store
from bespeak.state.store.sql import CURRENT
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Conflict, Rows, Store
from bespeak.state.store.transfer import (
    CountRows,
    FillTables,
    NumberedRow,
    ReadTables,
    WrongRowError,
    export_store,
    import_store,
    shapes,
)

pytestmark = pytest.mark.anyio

HEAD = {"format": "bespeak-store", "version": CURRENT}
NONCE = {"table": "nonces", "row": {"kind": "k", "value": "v", "expires": 1.5}}


async def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}

    def take(table: str, rows: Rows) -> bool:
        found.setdefault(table, []).extend(tuple(row) for row in rows)
        return True

    await store.read(ReadTables(take))
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


async def test_export_and_import_round_trip_on_both_databases(store: Store, tmp_path: Path) -> None:
    await store.do(ClaimKey("a b", 'key \u2713 \\ "', b"\0\xff", 30, 60))
    await store.do(FinishKey("a b", 'key \u2713 \\ "', 1, bytes(range(256)), 60))
    await store.do(ClaimKey("a b", "open", b"", 30, 60))
    await asyncio.gather(*(store.do(UseNonce("k", str(number), 60)) for number in range(250)))
    await store.do(AppendAudit("agent", {"a": 1}))
    file = tmp_path / "export.jsonl"
    with file.open("wb") as out:
        assert await export_store(store, out.write) == 253
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert (lines[0], lines[-1]) == (HEAD, {"rows": 253})
    assert {base64.b64decode(line["row"]["answer"] or "") for line in lines if line.get("table") == "idempotency"} == {
        b"",
        bytes(range(256)),
    }
    other = SqliteStore.in_memory()
    try:
        assert await import_store(other, file) == 253
        assert await contents(other) == await contents(store)
        assert await other.read(FindKey("a b", 'key \u2713 \\ "')) == Recorded(b"\0\xff", bytes(range(256)))
    finally:
        await other.close()


async def test_an_export_of_sqlite_can_be_imported_anywhere(store: Store, tmp_path: Path) -> None:
    source, file = SqliteStore.in_memory(), tmp_path / "export.jsonl"
    try:
        await source.do(ClaimKey("a", "k", b"\1", 30, 60), UseNonce("k", "v", 60))
        with file.open("wb") as out:
            await export_store(source, out.write)
        assert await import_store(store, file) == 2
        assert await contents(store) == await contents(source)
    finally:
        await source.close()


async def test_write_error_of_the_output_is_raised_unchanged(store: Store) -> None:
    await store.do(UseNonce("k", "v", 60))
    written = 0

    def write(_: bytes) -> None:
        nonlocal written
        written += 1
        if written > 1:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        await export_store(store, write)
    assert await store.do(UseNonce("k", "w", 60)) == [True]


def text(*lines: Any) -> bytes:
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


def row(table: str, **values: Any) -> dict[str, Any]:
    kinds = {name: str(kind) for name, kind in shapes()[table].row.__annotations__.items()}
    blank = {name: "x" if "str" in kind else "" if "bytes" in kind else 1 for name, kind in kinds.items()}
    return {"table": table, "row": blank | values}


@rows(
    "content, line, message",
    (b"", 1, "truncated"),
    (b"\n", 1, "truncated"),
    (b"\xff\xfe", 1, "malformed"),
    (b"[" * 100_000, 1, ""),
    (text({"format": "other", "version": 1}), 1, "not an export of a store"),
    (text({"format": "bespeak-store", "version": CURRENT + 1}), 1, f"newer bespeak.*version {CURRENT + 1}"),
    (text({"format": "bespeak-store", "version": 0}), 1, "older bespeak.*bespeak store migrate"),
    (text({"format": "bespeak-store"}), 1, "version"),
    (text(HEAD), 2, "truncated"),
    (text(HEAD, NONCE), 3, "truncated"),
    (text(HEAD, NONCE)[:-5], 2, "truncated"),
    (text(HEAD, NONCE, {"rows": 2}), 3, "announces 2 rows but has 1"),
    (text(HEAD, NONCE, {"rows": 1}, NONCE), 4, "after the last line"),
    (text(HEAD, {"table": "orders", "row": {}}, {"rows": 1}), 2, "no table 'orders'"),
    (text(HEAD, {"table": "sqlite_master", "row": {}}), 2, "no table"),
    (
        text(HEAD, {"table": "nonces", "row": {"kind": "k", "value": "v"}}),
        2,
        "nonces is not valid: .*required field `expires`",
    ),
    (text(HEAD, row("nonces", more=1)), 2, "unknown field `more`"),
    (text(HEAD, {**NONCE, "more": 1}), 2, "unknown field"),
    (text(HEAD, row("nonces", kind=None)), 2, "got `null` - at `\\$.kind`"),
    (text(HEAD, row("nonces", kind=1)), 2, "Expected `str`, got `int` - at `\\$.kind`"),
    (text(HEAD, row("nonces", kind="a\0b")), 2, "`\\$.kind`"),
    (text(HEAD, row("nonces", expires="1")), 2, "Expected `float`"),
    (text(HEAD, row("nonces", expires=True)), 2, "Expected `float`"),
    (text(HEAD, row("nonces", expires=10**400)), 2, ""),
    (text(HEAD, row("idempotency", fence=1.5)), 2, "Expected `int`, got `float` - at `\\$.fence`"),
    (text(HEAD, row("idempotency", fence=1 << 70)), 2, "`\\$.fence`"),
    (text(HEAD, row("idempotency", request_hash="*")), 2, "Invalid base64 encoded string - at `\\$.request_hash`"),
    (text(HEAD, row("idempotency", request_hash=7)), 2, "Expected `bytes`, got `int`"),
    (text(HEAD, NONCE, NONCE, {"rows": 2}), 2, "has the key of another one"),
)
async def test_invalid_file_is_refused_with_its_line_and_changes_nothing(
    tmp_path: Path, content: bytes, line: int, message: str
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_bytes(content)
    store = open_store(str(tmp_path / "s.db"), role="sole")
    try:
        outcome = await import_store(store, file)
        assert isinstance(outcome, Conflict)
        assert (outcome.reason, outcome.details["line"]) == ("wrong-row", line)
        assert re.search(message, outcome.details["message"]), outcome.details["message"]
        assert await contents(store) == {}
        file.write_bytes(text(HEAD, NONCE, {"rows": 1}))
        assert await import_store(store, file) == 1
    finally:
        await store.close()


async def test_endless_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.state.store.transfer._LONGEST_LINE", 1000)
    file = tmp_path / "export.jsonl"
    file.write_bytes(text(HEAD) + b"x" * 1_000_000)
    store = SqliteStore.in_memory()
    try:
        outcome = await import_store(store, file)
        assert isinstance(outcome, Conflict)
        assert "longer than 1000 bytes" in outcome.details["message"]
    finally:
        await store.close()


async def test_missing_file_is_named(tmp_path: Path) -> None:
    store = SqliteStore.in_memory()
    try:
        outcome = await import_store(store, tmp_path / "none")
        assert isinstance(outcome, Conflict)
        assert "No such file" in outcome.details["message"]
    finally:
        await store.close()


KINDS = {
    "str": st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=8),
    "bytes": st.binary(max_size=8),
    "float": st.floats(-1e12, 1e12),
    "int": st.integers(-(1 << 63), (1 << 63) - 1),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    name = str(kind)
    values = next(values for word, values in KINDS.items() if word in name)
    return st.none() | values if "None" in name else values


ROWS = st.lists(
    st.sampled_from(sorted(shapes())).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.tuples(*map(values_of, shapes()[name].row.__annotations__.values())),
        )
    ),
    max_size=12,
    unique_by=lambda pair: (pair[0], *pair[1][: len(shapes()[pair[0]].key)]),
)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_any_rows_round_trip(tmp_path_factory: Any, rows: list[tuple[str, tuple[Any, ...]]]) -> None:
    async def use() -> None:
        one, other = SqliteStore.in_memory(), SqliteStore.in_memory()
        try:
            numbered = [(number, name, values) for number, (name, values) in enumerate(sorted(rows, key=repr))]
            assert await one.do(FillTables(lambda: numbered)) == [len(rows)]
            written: list[bytes] = []
            await export_store(one, written.append)
            file = tmp_path_factory.mktemp("export") / "e.jsonl"
            file.write_bytes(b"".join(written))
            assert await import_store(other, file) == len(rows)
            assert await contents(other) == await contents(one)
        finally:
            await one.close()
            await other.close()

    asyncio.run(use())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_file_is_imported_completely_or_refused(tmp_path_factory: Any, junk: bytes, at: int) -> None:
    async def use() -> None:
        store = SqliteStore.in_memory()
        try:
            file = tmp_path_factory.getbasetemp() / "junk.jsonl"
            whole = text(HEAD, NONCE, {"rows": 1})
            file.write_bytes(whole[:at] + junk + whole[at + len(junk) :])
            outcome = await import_store(store, file)
            count = 0 if isinstance(outcome, Conflict) else outcome
            assert await store.read(CountRows("nonces")) == count
        finally:
            await store.close()

    asyncio.run(use())


async def test_rows_and_expired_rows_are_counted(store: Store) -> None:
    await store.do(UseNonce("k", "old", -1), UseNonce("k", "new", 60))
    assert await store.read(CountRows("nonces")) == 2
    assert await store.read(CountRows("nonces", expired=True)) == 1
    assert await store.read(CountRows("audit")) == 0


async def tables_contents(store: Store) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}

    def take(table: str, rows: Rows) -> bool:
        found.setdefault(table, []).extend(map(tuple, rows))
        return True

    count = await store.read(ReadTables(take))
    assert count == sum(map(len, found.values()))
    return found


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
async def test_every_row_is_read_once_for_any_number_of_pages(store: Store, count: int) -> None:
    await asyncio.gather(*(store.do(UseNonce(f"k{number % 3}", str(number), 60)) for number in range(count)))
    found = (await tables_contents(store)).get("nonces", [])
    assert sorted(row[:2] for row in found) == sorted((f"k{number % 3}", str(number)) for number in range(count))


async def test_changes_during_reading_are_not_seen(first: Store, second: Store) -> None:
    await asyncio.gather(*(first.do(UseNonce("k", f"{number:04}", 60)) for number in range(300)))
    loop, seen, wrote = asyncio.get_running_loop(), 0, False

    class Interruption:
        def take(self, _: str, rows: Rows) -> bool:
            nonlocal seen, wrote
            seen += len(rows)
            if not wrote:
                wrote = True
                # On PostgreSQL this runs in the loop, which must go on to let the other store write.
                pending.append(asyncio.run_coroutine_threadsafe(second.do(UseNonce("k", "9999", 60)), loop))
                if threading.current_thread() is not reading:
                    # SQLite reads in a thread: be sure that the change comes between two pages.
                    assert pending[0].result(10) == [True]
            return True

    reading = threading.current_thread()
    pending: list[Any] = []
    assert await first.read(ReadTables(Interruption().take)) == 300
    assert await asyncio.wrap_future(pending[0]) == [True]
    assert await first.read(CountRows("nonces")) == 301


async def test_reading_can_be_stopped_early(store: Store) -> None:
    await asyncio.gather(*(store.do(UseNonce("k", str(number), 60)) for number in range(300)))
    assert await store.read(ReadTables(lambda _, __: False)) == 100


def nonces(*values: str) -> Iterable[NumberedRow]:
    return [(line, "nonces", ("k", value, 1.5)) for line, value in enumerate(values, 2)]


async def test_new_rows_are_numbered_after_imported_ones(store: Store) -> None:
    rows = [(2, "nonces", ("k", "a", 1.5)), (3, "audit", (7, "s", 1, "agent", "id", "jws"))]
    assert await store.do(FillTables(lambda: rows)) == [2]
    assert (await tables_contents(store))["nonces"] == [("k", "a", 1.5)]
    await store.do(AppendAudit("other", {}))
    assert [row[0] for row in await store.read(ScanAudit())] == [7, 8]


@pytest.mark.parametrize("count", [0, 49, 50, 51, 120])
async def test_any_number_of_rows_can_be_put(store: Store, count: int) -> None:
    values = [str(number) for number in range(count)]
    assert await store.do(FillTables(lambda: nonces(*values))) == [count]
    assert await store.read(CountRows("nonces")) == count


async def test_import_into_tables_with_rows_is_refused(store: Store) -> None:
    await store.do(UseNonce("k", "mine", 60))
    assert await store.do(FillTables(lambda: nonces("a"))) == Conflict("not-empty", {"table": "nonces"})
    assert await store.read(CountRows("nonces")) == 1


async def test_duplicate_row_refuses_the_whole_import(store: Store) -> None:
    outcome = await store.do(FillTables(lambda: nonces(*map(str, range(60)), "7")))
    assert isinstance(outcome, Conflict)
    assert outcome.reason == "wrong-row"
    assert outcome.details["message"] == "a row of nonces between the lines 52 and 62 has the key of another one"
    assert await store.read(CountRows("nonces")) == 0


async def test_invalid_row_rolls_back_the_rows_before_it(store: Store) -> None:
    def rows() -> Iterable[NumberedRow]:
        yield from nonces(*map(str, range(60)))
        raise WrongRowError(62, "it is broken")

    assert await store.do(FillTables(rows)) == Conflict("wrong-row", {"line": 62, "message": "it is broken"})
    assert await store.read(CountRows("nonces")) == 0
    assert await store.do(UseNonce("k", "1", 60)) == [True]
