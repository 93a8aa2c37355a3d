"""The PostgreSQL store as a whole: what only this driver promises, above all when the server goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import PostgresServer, running_postgres
from tests.state.store.relay import relayed
from tests.state.store.sealing import PlainSealer

from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.state.store import postgres_connection
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import FindKey, Recorded, RecordKey, UseNonce
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.store import Command, Conflict, Statement, Steps

pytestmark = pytest.mark.anyio

QUICKLY = 8.0
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
