"""The PostgreSQL store as a whole: what only this driver promises, above all when the server goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.cases import rows
from tests.postgres import PostgresServer, running_postgres
from tests.state.store.relay import relayed
from tests.state.store.sealing import PlainSealer

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.extensions.messages.store import PutOutbox
from bespeak.extensions.payments.store import HELD, SALES, CheckLedger, ListAccounts, MoveMoney, OpenAccount
from bespeak.extensions.workflows.store import NoteSteps, StepRow
from bespeak.state.store import postgres, postgres_connection
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import (
    ClaimKey,
    FindKey,
    FinishKey,
    Recorded,
    RecordKey,
    ReleaseKey,
    UseNonce,
)
from bespeak.state.store.commands.records import ListRecords, PutRecord
from bespeak.state.store.postgres import Listener, PostgresStore, rows_of
from bespeak.state.store.postgres_connection import Address
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Then

pytestmark = pytest.mark.anyio

QUICKLY = 25.0
"""Seconds within which an outage must be reported; much less on an idle machine."""


class Settings(Command, frozen=True):
    """What the server says of the session."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT current_setting('synchronous_commit'), current_schema()")
        return tuple(rows[0])


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Start a server that a test may stop."""
    with running_postgres() as server:
        yield server


async def opened(dsn: str, stream: str = "plain", durability: str = "full") -> PostgresStore:
    store = PostgresStore(dsn, durability=durability)
    store.attach(PlainSealer(stream))
    await store.start()
    return store


@pytest.mark.parametrize(("durability", "commit"), [("full", "on"), ("process", "off")])
async def test_durability_decides_what_a_commit_waits_for(postgres_dsn: str, durability: str, commit: str) -> None:
    store = await opened(postgres_dsn, durability=durability)
    assert await store.read(Settings()) == (commit, "bespeak")
    assert await store.do(Settings()) == [(commit, "bespeak")]
    assert not store.sole
    await store.close()


async def test_synchronous_commit_is_enforced(postgres_dsn: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(f"ALTER DATABASE {postgres_dsn.rpartition('/')[2]} SET synchronous_commit = off")
    await connection.close()
    store = await opened(postgres_dsn)
    assert await store.read(Settings()) == ("on", "bespeak")
    await store.close()


async def test_a_store_that_was_not_started_says_so(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn)
    for attempt in (store.do(UseNonce("k", "v", 60.0)), store.read(Settings())):
        with pytest.raises(StoreUnavailableError, match="not started"):
            await attempt
    await store.close()


@pytest.mark.process
@pytest.mark.parametrize("how", ["QUIT", "INT"])
async def test_outage_is_reported_at_once_and_ends_when_the_server_is_back(
    own_server: PostgresServer, how: str
) -> None:
    store = await opened(await own_server.create_database())
    back = asyncio.Event()
    store.watch("anything", back.set)
    await store.do(RecordKey("s", "before", b"h", b"answer", 60.0), AppendAudit("agent", {}))
    await asyncio.to_thread(own_server.stop, how)
    for _ in range(3):
        began = time.monotonic()
        for attempt in (
            store.do(UseNonce("k", "v", 60.0)),
            store.do(UseNonce("k", "w", 60.0), AppendAudit("agent", {})),
            store.do(Settings()),
            store.read(Settings()),
        ):
            with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1"):
                await attempt
        assert time.monotonic() - began < QUICKLY
    await asyncio.to_thread(own_server.start)
    await asyncio.wait_for(back.wait(), 30)
    assert await store.read(FindKey("s", "before")) == Recorded(b"h", b"answer")
    assert await store.do(UseNonce("k", "v", 60.0)) == [True]
    assert not isinstance(await store.do(UseNonce("k", "w", 60.0), AppendAudit("agent", {})), Conflict)
    assert await store.do(Settings()) == [("on", "bespeak")]
    assert [row[4] for row in await store.read(ScanAudit())] == ["plain-1<", "plain-2<plain-1"]
    await store.close()


@pytest.mark.process
async def test_outages_lose_and_duplicate_nothing_and_break_no_chain(own_server: PostgresServer) -> None:
    store = await opened(await own_server.create_database())
    acknowledged: list[str] = []
    refused = 0
    stopped = False
    back = asyncio.Event()
    store.watch("anything", back.set)

    async def work(worker: int) -> None:
        nonlocal refused
        number = 0
        while not stopped:
            number += 1
            key = f"{worker}-{number}"
            try:
                done = await store.do(
                    RecordKey("s", key, b"", b"", 60.0), AppendAudit(f"agent{worker % 5}", {"key": key})
                )
                assert not isinstance(done, Conflict)
                acknowledged.append(key)
            except StoreUnavailableError:
                refused += 1
                await back.wait()

    workers = [asyncio.ensure_future(work(number)) for number in range(32)]
    for _ in range(3):
        seen = len(acknowledged)
        while len(acknowledged) < seen + 300:
            await asyncio.sleep(0.001)
        back.clear()
        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.start)
        await asyncio.wait_for(back.wait(), 30)
    stopped = True
    await asyncio.wait_for(asyncio.gather(*workers), 30)
    assert refused
    rows = []
    while page := await store.read(ScanAudit(after=rows[-1][0] if rows else 0)):
        rows += page
    keys = [row[5] for row in rows]
    assert len(set(keys)) == len(keys)
    assert {repr({"key": key}) for key in acknowledged} <= set(keys)
    assert [row[2] for row in rows] == list(range(1, len(rows) + 1))
    heads: dict[str, str] = {}
    for row in rows:
        own, _, previous = row[4].partition("<")
        assert previous == heads.get(row[3], "")
        heads[row[3]] = own
    await store.close()


async def test_unresponsive_server_does_not_block_callers(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (postgres_connection, postgres_connection):
        monkeypatch.setattr(module, "COMMAND_SECONDS", 0.3)
    monkeypatch.setattr(postgres_connection, "CONNECT_SECONDS", 0.3)
    async with relayed(postgres_dsn) as (relay, dsn):
        store = await opened(dsn)
        back = asyncio.Event()
        await store.do(UseNonce("k", "before", 60.0), AppendAudit("agent", {}))
        relay.swallow()
        began = time.monotonic()
        units = [store.do(UseNonce("k", f"{number}", 60.0)) for number in range(2000)]
        units += [store.do(UseNonce("a", f"{number}", 60.0), AppendAudit("agent", {})) for number in range(2000)]
        units += [store.do(Settings(), then=lambda _: [AppendAudit("agent", {})]) for _ in range(100)]
        outcomes = await asyncio.gather(*units, *(store.read(Settings()) for _ in range(100)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailableError}
        assert time.monotonic() - began < QUICKLY
        store.watch("anything", back.set)
        relay.pass_on()
        relay.cut()
        await asyncio.wait_for(back.wait(), 30)
        assert not isinstance(await store.do(UseNonce("k", "after", 60.0), AppendAudit("agent", {})), Conflict)
        rows = await store.read(ScanAudit(limit=5000))
        assert [row[2] for row in rows] == list(range(1, len(rows) + 1))
        await store.close()


@pytest.mark.process
async def test_unreachable_server_is_named_without_the_password(own_server: PostgresServer) -> None:
    dsn = own_server.dsn().replace("postgres@", "postgres:s3cret@")
    await asyncio.to_thread(own_server.stop)
    with pytest.raises(ConfigError, match=rf"postgres at 127\.0\.0\.1:{own_server.port} cannot be reached") as caught:
        await PostgresStore(dsn).start()
    assert "s3cret" not in str(caught.value)


@pytest.mark.process
async def test_wrong_password_is_reported_without_quoting_it(own_server: PostgresServer) -> None:
    rules = own_server.folder / "data" / "pg_hba.conf"
    Path(rules).write_text("host all all 127.0.0.1/32 scram-sha-256\n")
    await asyncio.to_thread(own_server.stop)
    await asyncio.to_thread(own_server.start)
    with pytest.raises(ConfigError, match="refused the login") as caught:
        await PostgresStore(own_server.dsn().replace("postgres@", "postgres:s3cret@")).start()
    assert "s3cret" not in str(caught.value)


async def test_missing_database_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(ConfigError, match=r"database missing at .* does not exist"):
        await PostgresStore(postgres_server.dsn("missing")).start()


CLAIM = ClaimKey("s", "k", b"h", 30.0, 60.0)
FINISH = FinishKey("s", "k", 1, b"a", 60.0)
APPEND = AppendAudit("agent", {})
HOLD = MoveMoney("1", "principal/acme", HELD, "EUR", 5)
SETTLE = MoveMoney("2", HELD, SALES, "EUR", 5)


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


@rows(
    "commands, rows",
    ((CLAIM,), {("idempotency", "s", "k")}),
    ((FINISH, APPEND), {("idempotency", "s", "k")}),
    ((FINISH, PutOutbox("t", "r", "{}"), APPEND), {("idempotency", "s", "k")}),
    ((APPEND,), set()),
    ((UseNonce("k", "v", 1.0), ReleaseKey("s", "k", 1)), {("nonces", "k", "v"), ("idempotency", "s", "k")}),
    ((APPEND, FINISH), None),
    ((FINISH, UseNonce("k", "v", 1.0)), None),
    ((FINISH, ReleaseKey("s", "k", 1)), None),
    (
        (PutRecord("p", "purchase", "ann", "settled", "{}"), HOLD, SETTLE),
        {("records", "p"), ("accounts", "principal/acme", "EUR"), ("transactions", "1"), ("transactions", "2")},
    ),
    ((HOLD, MoveMoney("3", "principal/acme", HELD, "EUR", 1)), None),
    ((CLAIM, APPEND), None),
    ((FINISH, Look()), None),
    ((), None),
)
async def test_unit_is_grouped_if_no_command_judges_what_an_earlier_one_changes(
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
    monkeypatch.setattr(postgres, "GROUP", 10)
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
    monkeypatch.setattr(postgres, "QUEUE", 10)
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


class Lock(Command, frozen=True):
    """Waits for a row, and has no grouping."""

    key: str

    def steps(self) -> Steps:
        rows = yield Statement("SELECT 1 FROM idempotency WHERE key = ? {lock}", (self.key,))
        return len(rows)


async def test_units_that_need_a_locked_row_hold_up_no_others(store: PostgresStore, postgres_dsn: str) -> None:
    await store.do(ClaimKey("s", "locked", b"h", 0.0, 60.0))
    other = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "bespeak"})
    await other.execute("BEGIN; SELECT 1 FROM idempotency FOR UPDATE")
    waiting = [
        asyncio.ensure_future(store.do(command, *rest))
        for command, *rest in (
            (ClaimKey("s", "locked", b"h", 0.0, 60.0),),
            (FinishKey("s", "locked", 1, b"a", 60.0), APPEND),
            (Lock("locked"), APPEND),
        )
    ]
    for number in range(3):
        assert not isinstance(await store.do(ClaimKey("s", f"{number}", b"h", 30.0, 60.0)), Conflict)
        assert not isinstance(await store.do(FinishKey("s", f"{number}", 1, b"a", 60.0), APPEND), Conflict)
        assert not isinstance(await store.do(Look(), then=lambda _: [APPEND]), Conflict)
    assert not any(one.done() for one in waiting)
    await other.execute("COMMIT")
    await other.close()
    assert not any(isinstance(one, Exception) for one in await asyncio.gather(*waiting, return_exceptions=True))


@pytest.mark.parametrize("follows", [False, True])
async def test_purchases_that_fail_are_undone_and_the_others_are_made(store: PostgresStore, follows: bool) -> None:
    await store.do(OpenAccount("principal/acme", "EUR", 5))
    await store.do(OpenAccount("principal/bob", "EUR", 5))

    def buy(number: int, account: str) -> Any:
        return store.do(
            PutRecord(f"p{number}", "purchase", "ann", "settled", "{}"),
            MoveMoney(f"p{number}/hold", account, HELD, "EUR", 3),
            MoveMoney(f"p{number}/settle", HELD, SALES, "EUR", 3),
            *(() if follows else (APPEND,)),
            then=(lambda _: [APPEND]) if follows else None,
        )

    done = await asyncio.gather(*(buy(number, f"principal/{'acme' if number % 2 else 'bob'}") for number in range(6)))
    refused = [one for one in done if isinstance(one, Conflict)]
    assert [one.reason for one in refused] == ["insufficient-funds"] * 4
    assert len(await store.read(ListRecords("purchase"))) == 2
    balances = {one.account: one.balance for one in await store.read(ListAccounts())}
    assert balances == {"opening": -10, "principal/acme": 2, "principal/bob": 2, HELD: 0, SALES: 6}
    assert await store.read(CheckLedger()) == []
    assert [row[2] for row in await store.read(ScanAudit())] == [1, 2]


async def test_a_purchase_takes_few_round_trips(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.do(OpenAccount("principal/acme", "EUR", 500))
    sent: list[str] = []
    for name in ("fetch", "execute"):
        real = getattr(asyncpg.Connection, name)

        async def count(self: Any, query: str, *args: Any, _real: Any = real, **more: Any) -> Any:
            sent.append(query)
            return await _real(self, query, *args, **more)

        monkeypatch.setattr(asyncpg.Connection, name, count)
    units = [
        store.do(PutRecord("p", "purchase", "ann", "settled", "{}"), HOLD, SETTLE, then=lambda _: [APPEND]),
        *(store.do(UseNonce("k", f"{number}", 1.0), APPEND) for number in range(50)),
    ]
    assert not any(isinstance(one, Conflict) for one in await asyncio.gather(*units))
    assert len(sent) <= 7, sent


class News:
    """The notifications received."""

    def __init__(self) -> None:
        self.topics: asyncio.Queue[str] = asyncio.Queue()
        self.all: asyncio.Queue[None] = asyncio.Queue()

    def tell_all(self) -> None:
        self.all.put_nowait(None)

    def listener(self, dsn: str) -> Listener:
        return Listener(Address(dsn, "full"), self.topics.put_nowait, self.tell_all)


async def notify(dsn: str, topic: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("SELECT pg_notify('bespeak', $1)", topic)
    await connection.close()


async def test_watcher_is_notified_of_a_changed_topic(postgres_dsn: str) -> None:
    news = News()
    listener = news.listener(postgres_dsn)
    await listener.start()
    await notify(postgres_dsn, "agents")
    assert await asyncio.wait_for(news.topics.get(), 20) == "agents"
    assert news.all.empty()
    await listener.close()


async def test_all_watchers_are_notified_after_a_lost_connection(postgres_dsn: str) -> None:
    news = News()
    async with relayed(postgres_dsn) as (relay, dsn):
        listener = news.listener(dsn)
        await listener.start()
        for topic in ("agents", "outbox"):
            relay.cut()
            await asyncio.wait_for(news.all.get(), 20)
            await notify(postgres_dsn, topic)
            assert await asyncio.wait_for(news.topics.get(), 20) == topic
        await listener.close()


async def test_all_watchers_are_notified_periodically(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "POLL_SECONDS", 0.02)
    news = News()
    listener = news.listener(postgres_dsn)
    await listener.start()
    for _ in range(3):
        await asyncio.wait_for(news.all.get(), 20)
    await listener.close()


async def test_a_listener_that_was_never_started_can_be_closed() -> None:
    await News().listener("postgresql://127.0.0.1:1/nowhere").close()
