"""Groups: which units are part of one, and what happens when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from tests.state.store.sealing import PlainSealer

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store import postgres_writer
from bespeak.state.store.command import Command, Conflict, Statement, Steps
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import ClaimKey, FinishKey, RecordKey, ReleaseKey
from bespeak.state.store.commands.nonces import UseNonce
from bespeak.state.store.commands.outbox import PutOutbox
from bespeak.state.store.commands.records import ListRecords, PutRecord
from bespeak.state.store.commands.steps import NoteSteps, StepRow
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.postgres_writer import rows_of
from bespeak.state.store.store import Then

pytestmark = pytest.mark.anyio

CLAIM = ClaimKey("s", "k", b"h", 30.0, 60.0)
FINISH = FinishKey("s", "k", 1, b"a", 60.0)
APPEND = AppendAudit("agent", {})


class Look(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("SELECT 1")


class Transactions(Command, frozen=True):
    """How many transactions wrote the rows of a table."""

    table: str

    def steps(self) -> Steps:
        rows = yield Statement(f"SELECT count(DISTINCT xmin::text), count(*) FROM {self.table}")
        return tuple(rows[0])


@pytest.fixture
async def store(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_dsn)
    store.attach(PlainSealer())
    await store.start()
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("commands", "rows"),
    [
        ((CLAIM,), {("idempotency", "s", "k")}),
        ((FINISH, APPEND), {("idempotency", "s", "k")}),
        ((FINISH, PutOutbox("t", "r", "{}"), APPEND), {("idempotency", "s", "k")}),
        ((APPEND,), set()),
        ((UseNonce("k", "v", 1.0), ReleaseKey("s", "k", 1)), {("nonces", "k", "v"), ("idempotency", "s", "k")}),
        ((APPEND, FINISH), None),
        ((FINISH, UseNonce("k", "v", 1.0)), None),
        ((FINISH, ReleaseKey("s", "k", 1)), None),
        ((CLAIM, APPEND), None),
        ((FINISH, Look()), None),
        ((), None),
    ],
)
async def test_unit_is_grouped_if_only_its_first_command_can_refuse(
    commands: tuple[Command, ...], rows: set[Any] | None
) -> None:
    assert rows_of(commands) == rows


async def test_a_unit_is_undone_if_what_follows_from_its_results_cannot_be_done(store: PostgresStore) -> None:
    await store.do(*[PutRecord(f"w{number}", "workflow", "ann", "running", "{}") for number in range(0, 100, 2)])
    row = StepRow(1, 1, "done", 200, "{}")

    def closing(number: int) -> Then:
        # For every other one there is no workflow, so that it is undone; some are not grouped at all.
        more = [Look()] if number % 10 == 9 else []
        return lambda results: [NoteSteps(f"w{results[0].data}", 0, (row,)), *more, APPEND]

    done = await asyncio.gather(
        *(
            store.do(PutRecord(f"e{number}", "entity", "ann", "live", f"{number}"), then=closing(number))
            for number in range(100)
        )
    )
    for number, one in enumerate(done):
        if number % 2:
            assert one == Conflict("claim-lost")
        else:
            assert [type(result).__name__ for result in one] == ["Record", "str", "Sealed"]
    entities = await store.read(ListRecords("entity", limit=1000))
    assert {record.data for record in entities} == {str(number) for number in range(0, 100, 2)}
    assert (await store.read(Transactions("audit")))[1] == 50


async def test_units_that_follow_are_grouped(store: PostgresStore) -> None:
    units = (PutRecord(f"e{number}", "entity", "ann", "live", "{}") for number in range(100))
    await asyncio.gather(*(store.do(unit, then=lambda _: [APPEND]) for unit in units))
    assert await store.read(Transactions("records")) == (1, 100)
    assert await store.read(Transactions("audit")) == (1, 100)


async def test_units_that_wait_together_are_one_transaction(store: PostgresStore) -> None:
    await asyncio.gather(*(store.do(UseNonce("k", f"{number}", 60.0), APPEND) for number in range(100)))
    assert await store.read(Transactions("nonces")) == (1, 100)
    assert await store.read(Transactions("audit")) == (1, 100)


async def test_a_group_has_a_bounded_size(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writer, "GROUP", 10)
    await asyncio.gather(*(store.do(UseNonce("k", f"{number}", 60.0)) for number in range(35)))
    assert await store.read(Transactions("nonces")) == (4, 35)


async def test_refused_units_do_not_split_the_group(store: PostgresStore) -> None:
    await store.do(UseNonce("k", "7", 60.0))
    results = await asyncio.gather(*(store.do(UseNonce("k", f"{number}", 60.0), APPEND) for number in range(20)))
    assert [number for number, result in enumerate(results) if isinstance(result, Conflict)] == [7]
    assert await store.read(Transactions("audit")) == (1, 19)


@pytest.mark.parametrize("kind", ["a value of the wrong type", "a value the server refuses"])
async def test_faulty_unit_fails_alone_and_leaves_the_chain_intact(store: PostgresStore, kind: str) -> None:
    bad: Any = 5 if kind == "a value of the wrong type" else "nul\x00"
    results = await asyncio.gather(
        *(store.do(UseNonce("k", bad if number == 11 else f"{number}", 60.0), APPEND) for number in range(20)),
        return_exceptions=True,
    )
    assert [number for number, result in enumerate(results) if isinstance(result, StoreError)] == [11]
    assert not isinstance(results[11], StoreUnavailableError)
    assert [row[2] for row in await store.read(ScanAudit())] == list(range(1, 20))


async def test_units_on_the_same_row_are_not_in_one_group(store: PostgresStore) -> None:
    results = await asyncio.gather(
        *(store.do(RecordKey("s", f"k{number // 2}", b"", b"%d" % number, 60.0), APPEND) for number in range(10))
    )
    assert [isinstance(result, Conflict) for result in results] == [False, True] * 5


async def test_full_queue_refuses_at_once(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writer, "QUEUE", 10)
    results = await asyncio.gather(
        *(store.do(UseNonce("k", f"{number}", 60.0)) for number in range(15)), return_exceptions=True
    )
    assert [isinstance(result, StoreUnavailableError) for result in results] == [False] * 10 + [True] * 5


async def test_deadlocked_unit_is_retried(store: PostgresStore, postgres_dsn: str) -> None:
    await asyncio.gather(*(store.do(ClaimKey("s", key, b"h", 0.0, 60.0)) for key in ("a", "b")))
    other = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "bespeak", "deadlock_timeout": "1h"})
    await other.execute("BEGIN")
    await other.execute("UPDATE idempotency SET lease = 0 WHERE key = 'b'")
    units = asyncio.gather(*(store.do(ClaimKey("s", key, b"h", 30.0, 60.0)) for key in ("a", "b")))
    while not await other.fetch("SELECT 1 FROM pg_locks WHERE NOT granted"):
        await asyncio.sleep(0)
    await other.execute("UPDATE idempotency SET lease = 0 WHERE key = 'a'")
    await other.execute("COMMIT")
    await other.close()
    results = await units
    assert [result[0].fence for result in results if not isinstance(result, Conflict)] == [2, 2]
