"""Servers are killed, disks are full, stores and links are gone, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.cases import rows
from tests.postgres import why_not
from tests.service import AGENT, echo, make_endpoint
from tests.state.store.relay import Relay, relayed
from tests.state.store.sealing import PlainSealer
from tests.stateful import keeping
from tools.faults import disk, kill, outage, queues, retries, soak, workflows
from tools.faults.ledger import Ledger
from tools.faults.load import LONGEST, load, send
from tools.faults.proof import Subject, prove, tell
from tools.faults.server import Server

from bespeak.agent.client.agtp_transport import Pool
from bespeak.contract.agent import Agent
from bespeak.errors import StoreUnavailableError
from bespeak.extensions.payments.store import HELD, SALES, CheckLedger, MoveMoney, OpenAccount, account_of
from bespeak.state.store import postgres_connection
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Conflict, Steps

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.parametrize(("store", "workers"), [("sqlite", 1), ("sqlite", 2), ("postgres", 2)])
def test_acknowledged_changes_survive_kills_once(store: str, workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    reason = why_not() if store == "postgres" else None
    if reason is not None:
        pytest.skip(reason)
    code = kill.run(store, rounds=2, clients=8, workers=workers, seed=workers, most=120)
    told = capsys.readouterr().out
    assert code == 0, told
    assert "2 kills and 0 graceful stops of the server" in told
    if workers > 1 and Path("/proc/self/task").exists():
        assert "1 kills and 1 pauses of single workers" in told


@pytest.mark.parametrize(("harm", "workers"), [("orderly stops", 1), ("freezes", 1), ("crashes", 2)])
def test_database_outage_is_reported_and_survived(harm: str, workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    if harm == "freezes" and not Path("/proc/self/task").exists():
        pytest.skip("the processes of a database are found in /proc")
    code = outage.run(rounds=1, clients=8, workers=workers, seed=1, only=harm)
    told = capsys.readouterr().out
    assert code == 0, told
    assert f"1 {harm}" in told


def test_repetitions_after_a_delay_survive_kills(capsys: pytest.CaptureFixture[str]) -> None:
    assert retries.run(rounds=2, seed=1, calls=24) == 0, capsys.readouterr().out


@rows(
    "store, harm, workers, done",
    pytest.param("sqlite", "process", 1, "1 kills", id="kill-and-restart"),
    pytest.param("postgres", "process", 2, "1 workers paused", id="stalled-process-is-fenced"),
    pytest.param("postgres", "machine", 1, "1 kills", id="one-of-two-machines"),
    pytest.param("postgres", "database", 1, "1 crashes", id="database-restarted"),
)
def test_chains_and_batches_end_with_every_effect_once(
    store: str, harm: str, workers: int, done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = why_not() if store == "postgres" else None
    if reason is not None:
        pytest.skip(reason)
    if workers > 1 and not Path("/proc/self/task").exists():
        pytest.skip("the workers of a server are found in /proc")
    code = workflows.run(store, rounds=1, clients=6, seed=1, workers=workers, harm=harm)
    told = capsys.readouterr().out
    assert code == 0, told
    assert done in told


@rows(
    "store, harm, workers, done",
    pytest.param("sqlite", "process", 1, "1 kills", id="kill-and-restart"),
    pytest.param("postgres", "process", 2, "1 workers paused", id="stalled-process-is-fenced"),
    pytest.param("postgres", "machine", 1, "1 kills", id="one-of-two-machines"),
    pytest.param("postgres", "database", 1, "1 crashes", id="database-restarted"),
)
def test_items_of_queues_are_done_with_every_effect_once(
    store: str, harm: str, workers: int, done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = why_not() if store == "postgres" else None
    if reason is not None:
        pytest.skip(reason)
    if workers > 1 and not Path("/proc/self/task").exists():
        pytest.skip("the workers of a server are found in /proc")
    audited = workers == 1 and harm != "database"
    code = queues.run(store, rounds=1, clients=6, seed=1, workers=workers, harm=harm, audited=audited)
    told = capsys.readouterr().out
    assert code == 0, told
    assert done in told


def test_soak_runs_every_script() -> None:
    assert len(soak.runs(postgres=True, network=True)) > len(soak.runs(postgres=False, network=False))


@pytest.mark.parametrize("mounted", [True, False])
def test_full_disk_refuses_requests_until_there_is_space(mounted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = disk.run(rounds=2, clients=8, seed=1, mounted=mounted)
    except PermissionError as error:
        pytest.skip(f"{error} (as user {os.geteuid()})")
    told = capsys.readouterr().out
    assert code == 0, told
    assert "2 times full" in told


@pytest.mark.parametrize("used", [False, True])
def test_server_does_not_start_on_a_full_disk_and_reports_the_reason(tmp_path: Path, used: bool) -> None:
    try:
        with disk.disk_in(tmp_path, mounted=True) as full:
            subject = Subject.new(tmp_path / "deployment", str(full.place))
            if used:
                server = subject.serve()
                assert server.stop() == 0
            full.fill(None)
            refusal = subject.refusal()
            # Which of the two depends on the file that SQLite needs room for first.
            assert "no space left" in refusal or "Look for a full or failing disk" in refusal
            assert str(full.place) in refusal
            assert "Traceback" not in refusal
            full.make_room(None)
            server = subject.serve()
            assert server.stop() == 0
    except PermissionError as error:
        pytest.skip(f"{error} (as user {os.geteuid()})")


SOME_KEY = "(SELECT min(key) FROM idempotency WHERE key LIKE 'seat-%')"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Subject, Ledger]]:
    """Fill a store with answers, cases and records; yield it with the ledger of its clients."""
    ledger = Ledger(random.Random(1))
    with TemporaryDirectory(prefix="bespeak-") as folder:
        subject = Subject.new(Path(folder) / "deployment", str(Path(folder) / "store.db"))

        async def fill() -> None:
            server = subject.serve()
            try:
                async with load(ledger, server.port, 4):
                    await ledger.wait_for(120)
                # The last record is of an acknowledgement: under load it may be of a 409, which promises nothing.
                pool = Pool("127.0.0.1", server.port, size=1)
                assert await send(pool, ledger, ledger.new()) in (200, 202)
                await pool.close()
                assert server.stop() == 0
            finally:
                server.kill()

        asyncio.run(fill())
        yield subject, ledger


def judged(served: tuple[Subject, Ledger], tmp_path: Path, harm: str) -> list[str]:
    """Return the faults found in a copy of the store after `harm`."""
    subject, ledger = served
    copy = Subject(subject.target, str(tmp_path / "copy.db"))
    source, target = sqlite3.connect(subject.place), sqlite3.connect(copy.place)
    source.backup(target)
    before = target.total_changes
    target.executescript(harm)
    assert (target.total_changes > before) == bool(harm)
    for connection in (source, target):
        connection.close()
    again = Ledger(random.Random(2))
    again.orders = [
        type(order)(order.key, order.method, order.path, order.body, order.attempts, order.answer, order.firsts)
        for order in ledger.answered
    ]
    for order, before in zip(again.orders, ledger.answered, strict=True):
        order.acknowledged = list(before.acknowledged)
    asyncio.run(prove(again, copy))
    return again.faults


def test_unchanged_store_has_no_fault(served: tuple[Subject, Ledger], tmp_path: Path) -> None:
    assert judged(served, tmp_path, "") == []


@rows(
    "harm, found",
    (f"DELETE FROM idempotency WHERE key = {SOME_KEY}", "was answered"),
    ("DELETE FROM idempotency WHERE key LIKE 'case-%'", "was carried out again"),
    ("DELETE FROM cases WHERE case_id = (SELECT min(case_id) FROM cases)", "cases: 1 lost"),
    ("DELETE FROM audit WHERE position = (SELECT max(position) - 60 FROM audit)", "audit verify"),
    ("DELETE FROM audit WHERE position = (SELECT max(position) FROM audit)", "is recorded 0 times"),
)
def test_lost_and_double_rows_are_found(served: tuple[Subject, Ledger], tmp_path: Path, harm: str, found: str) -> None:
    faults = judged(served, tmp_path, harm)
    assert [fault for fault in faults if found in fault], faults


def test_faults_are_printed_and_set_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger(random.Random(1))
    assert tell(ledger, "nothing") == 0
    ledger.faults.append("order-1 was lost")
    assert tell(ledger, "something") == 1
    assert "FAULT order-1 was lost" in capsys.readouterr().out


PATIENCE = 400  # number of requests within which damage is met


@pytest.fixture
def subject() -> Iterator[Subject]:
    # On a disk: a file in memory that is open can be written although it is immutable.
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Subject.new(Path(folder) / "deployment", str(Path(folder) / "state" / "store.db"))


@pytest.fixture
async def damaged(subject: Subject) -> AsyncIterator[Server]:
    Path(subject.place).parent.mkdir()
    server = subject.serve()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(random.Random(1))


async def test_requests_are_refused_if_store_is_read_only(subject: Subject, damaged: Server, ledger: Ledger) -> None:
    pool = Pool("127.0.0.1", damaged.port, read_timeout=LONGEST)
    kept = ledger.new()
    assert await send(pool, ledger, kept) in (200, 202)
    files = [subject.place, f"{subject.place}-wal"]
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", *files], check=False).returncode:
        pytest.skip("files that are open can be made read-only by root alone, where the file system allows it")
    try:
        assert await send(pool, ledger, ledger.new()) == 503
        assert (await pool.request("DISCOVER", "/methods")).status == 200
        await pool.close()
        assert "could not be read or written" in damaged.said()
        damaged.kill()
        refusal = subject.refusal()
        assert subject.place in refusal
        assert "Traceback" not in refusal
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)
    again = subject.serve()
    try:
        fresh = Pool("127.0.0.1", again.port, read_timeout=LONGEST)
        for order in ledger.orders:
            assert await send(fresh, ledger, order) in (200, 202)
        await fresh.close()
    finally:
        again.kill()
    assert kept.answer is not None
    assert ledger.faults == []


async def test_damaged_store_never_returns_a_wrong_answer(subject: Subject, ledger: Ledger) -> None:
    Path(subject.place).parent.mkdir()
    await _serve_some(subject, ledger)  # and end in order: all of it is in the file then
    kept = ledger.answered
    source = random.Random(1)
    server = subject.serve()
    try:
        with Path(subject.place).open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(source.randbytes(size - 4096))
        pool = Pool("127.0.0.1", server.port, read_timeout=LONGEST)
        statuses: list[int | None] = []
        while statuses.count(503) < 5 and len(statuses) < PATIENCE:
            order = ledger.new() if len(statuses) % 2 else source.choice(kept)
            statuses.append(await send(pool, ledger, order))
        assert 503 in statuses
        assert set(statuses) <= {200, 202, 503}
        assert (await pool.request("DISCOVER", "/methods")).status == 200
        await pool.close()
        assert "is damaged" in server.said()
        assert "Traceback" not in server.said()
    finally:
        server.kill()
    assert ledger.faults == []
    refusal = subject.refusal()
    assert "is damaged" in refusal
    assert "Traceback" not in refusal


async def _serve_some(subject: Subject, ledger: Ledger) -> None:
    server = subject.serve()
    try:
        pool = Pool("127.0.0.1", server.port, read_timeout=LONGEST)
        for _ in range(200):
            assert await send(pool, ledger, ledger.new()) in (200, 202)
        await pool.close()
        assert server.stop() == 0
    finally:
        server.kill()


# Killing a process closes its connections, so PostgreSQL notices at once. Below, the connections stay open and nothing
# arrives any more. `tools.faults.machines` does the same with network namespaces.
ACME, BOB = account_of("acme"), account_of("bob")
RECORD = AppendAudit("agent", {})


class LoseLink(Command, frozen=True):
    """Moves money; then nothing arrives any more, in the middle of the transaction."""

    relay: Relay
    lost: asyncio.Event
    money: MoveMoney

    def steps(self) -> Steps:
        moved = yield from self.money.steps()
        self.relay.swallow()
        self.lost.set()
        return moved


@pytest.fixture
async def survivor(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    async with AsyncExitStack() as stack:
        store = await opened(stack, postgres_dsn, "survivor")
        for account in (ACME, BOB):
            await store.do(OpenAccount(account, "EUR", 100))
        yield store


async def opened(stack: AsyncExitStack, dsn: str, stream: str) -> PostgresStore:
    store = PostgresStore(dsn)
    store.attach(PlainSealer(stream))
    await store.start()
    stack.push_async_callback(store.close)
    return store


async def test_node_lost_inside_a_transaction_stops_no_other_node(
    survivor: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = asyncio.Event()
    async with AsyncExitStack() as stack:
        relay, dsn = await stack.enter_async_context(relayed(postgres_dsn))
        with monkeypatch.context() as patch:
            patch.setattr(postgres_connection, "COMMAND_SECONDS", 1.0)  # for the connections of the lost node
            lost = await opened(stack, dsn, "lost")
            stack.callback(relay.pass_on)
            cut_off = lost.do(LoseLink(relay, gone, MoveMoney("1/hold", ACME, HELD, "EUR", 1)), RECORD)
            unfinished = asyncio.ensure_future(cut_off)
            await gone.wait()
        same = [
            asyncio.ensure_future(survivor.do(MoveMoney(f"2/{number}", ACME, HELD, "EUR", 1), RECORD))
            for number in range(3)
        ]
        # Other accounts, the accounts of all purchases, and what only has to be recorded go on.
        for number in range(5):
            bought = survivor.do(
                MoveMoney(f"3/{number}", BOB, HELD, "EUR", 1), MoveMoney(f"4/{number}", HELD, SALES, "EUR", 1), RECORD
            )
            assert not isinstance(await bought, Conflict)
            assert not isinstance(await survivor.do(UseNonce("k", f"{number}", 60.0), RECORD), Conflict)
        assert not any(one.done() for one in same)
        # PostgreSQL ends the transaction of the lost node before anybody has waited for too long.
        assert not any(isinstance(one, Conflict) for one in await asyncio.gather(*same))
        with pytest.raises(StoreUnavailableError):
            await unfinished
        assert await survivor.read(CheckLedger()) == []
        assert {row[1] for row in await survivor.read(ScanAudit())} == {"survivor"}


async def test_node_cut_from_store_does_not_serve_revoked_agents(survivor: PostgresStore, postgres_dsn: str) -> None:
    endpoints = (make_endpoint("QUERY", "/seat", echo), make_endpoint("BOOK", "/seat", echo, impact="irreversible"))
    desk = Agent(agent_id=AGENT, name="desk", status="active")
    revoke = SetAgentStatus(AGENT, "REVOKE", frozenset({"active"}), "retired", "ops", "lost", "desk", "active")
    flips: asyncio.Queue[bool] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        relay, dsn = await stack.enter_async_context(relayed(postgres_dsn))
        store = open_store(dsn, role="shared")
        bench = await stack.enter_async_context(
            keeping(*endpoints, store=store, agents=(desk,), agents_stale_after=1.0)
        )
        stack.callback(relay.pass_on)
        bench.bench.server.agents.watch_age(flips.put_nowait)
        assert (await bench.send("BOOK", "/seat")).status == 200
        relay.swallow()
        assert not isinstance(await survivor.do(revoke), Conflict)
        assert await asyncio.wait_for(flips.get(), 10) is True
        for method in ("BOOK", "QUERY", "DISCOVER"):
            refused = await bench.send(method, "/seat" if method != "DISCOVER" else "/")
            assert (refused.status, refused.error["code"]) == (503, "agents-stale")
            assert refused.header("Retry-After") == "2"
        assert (await bench.send("BOOK", "/seat", agent=None)).status == 503
        assert (await bench.send("QUERY", "/seat", agent=None)).status == 200
        assert (await bench.send("DISCOVER", agent=None)).status == 200
        relay.pass_on()
        assert await asyncio.wait_for(flips.get(), 30) is False
        assert (await bench.send("QUERY", "/seat")).status == 410
        assert (await bench.send("BOOK", "/seat", agent=None)).status == 200
