"""Workflows of three steps, each of which is noted in the store: rate and processor time, recovery, and due records.

A workflow is a CHAIN, or a function with three calls or three steps. The rates are those of a real server over AGTP,
with the load generator; DBOS, the peer, runs its workflows in process. Recovery, sleepers and due records are measured
on a real store, the first two with a real server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from load import Load, Loader
from report import Goal, table

import contract
from process import ServerProcess, free_port, on_core, running

ROOT = Path(__file__).resolve().parent.parent
PEER = Path(__file__).resolve().parent / "servers" / "dbos_peer.py"
PATHS = ("/rooms", "/seats", "/cars")
STEPS = [{"method": "BOOK", "path": path, "parameters": {"guest": "Ann"}} for path in PATHS]
RUNS = f"{contract.SCOPE}, activation:run"
PROGRAMS = {
    "CHAIN": contract.agtp_request({"steps": STEPS}, "CHAIN", "/"),
    "function, 3 calls": contract.agtp_request({"procedure_id": "calls", "input": {"guest": "Ann"}}, "RUN", "/", RUNS),
    "function, 3 steps": contract.agtp_request({"procedure_id": "steps", "input": {"guest": "Ann"}}, "RUN", "/", RUNS),
}
SLEEPERS = 10_000
"""Runs that sleep until the same time."""
OPEN = 10_000
"""Workflows that a killed server has left open."""
DUE = 100_000
"""Records that are due, spread over some seconds."""
SPREAD = 40.0
_SYNCED = ("fsync=on", "full_page_writes=on", "autovacuum=on", "shared_buffers=128MB")

_CONFIGURATION = """\
[server]
server_id = "trips.acme.example"
operator = "Acme"
contact = "ops@acme.example"
app = "servers.workflow_app:app"

[store]
place = "{place}"

[methods]
enable = ["CHAIN", "RUN"]

[audit]
enabled = {audit}
"""


@dataclass(slots=True)
class Variant:
    """A store and a number of connections, with the measurements."""

    name: str
    store: str
    connections: int = 32
    audit: bool = False
    program: str = "CHAIN"
    rounds: list[Load] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Workflows per second."""
        return median(load.rps for load in self.rounds)


@contextlib.contextmanager
def serving(folder: Path, place: str, *, audit: bool = False) -> Iterator[ServerProcess]:
    """Run the server on a store."""
    configuration = _CONFIGURATION.format(place=place, audit="true" if audit else "false")
    (folder / "bespeak.toml").write_text(configuration)
    port = free_port()
    with running(["-m", "bespeak", "serve", str(folder), "--agtp", f"127.0.0.1:{port}"], port) as server:
        yield server


def measure(loader: Loader, *, rounds: int, seconds: float) -> bool:
    """Run all variants in turn, print the tables and the goals; return True if every reply was a 200."""
    variants = [Variant("SQLite", "sqlite"), Variant("SQLite, audited", "sqlite", audit=True)]
    variants += [Variant(f"SQLite, {program}", "sqlite", program=program) for program in list(PROGRAMS)[1:]]
    with contextlib.ExitStack() as stack:
        database = _postgres(stack)
        if database is not None:
            variants += [
                Variant("PostgreSQL", "postgres"),
                Variant("PostgreSQL, audited", "postgres", audit=True),
                Variant("PostgreSQL, 128 connections", "postgres", connections=128),
                *(Variant(f"PostgreSQL, {program}", "postgres", program=program) for program in list(PROGRAMS)[1:]),
            ]
        for variant in variants:
            _run(loader, variant, database, rounds, seconds)
        _report(variants, _peers(stack, database, seconds))
        for store in ("SQLite", "PostgreSQL"):
            if store == "SQLite" or database is not None:
                with tempfile.TemporaryDirectory(prefix="bespeak-bench-") as name:
                    place = "state.db" if store == "SQLite" else database.new_database()
                    _recover(store, Path(name), place)
                    _sleep(store, Path(name), "sleepers.db" if store == "SQLite" else database.new_database())
                    where = str(Path(name) / "due.db") if store == "SQLite" else database.new_database()
                    asyncio.run(_carry_out(store, where))
    return not any(load.errors for variant in variants for load in variant.rounds)


def _run(loader: Loader, variant: Variant, database: Any, rounds: int, seconds: float) -> None:
    place = "state.db" if variant.store == "sqlite" else database.new_database()
    with (
        tempfile.TemporaryDirectory(prefix="bespeak-bench-") as name,
        serving(Path(name), place, audit=variant.audit) as server,
    ):
        request = PROGRAMS[variant.program]
        reply = server.exchange(request)
        if b'"status":"completed"' not in reply:
            raise RuntimeError(f"the workflow did not complete: {reply[:600]!r}")
        for number in range(rounds + 1):
            before = server.cpu_seconds()
            load = loader.run(server.port, request, seconds=seconds, connections=variant.connections)
            if number:  # the first round warms up
                variant.rounds.append(load)
                variant.cpu_us.append((server.cpu_seconds() - before) / load.requests * 1e6)


def _postgres(stack: contextlib.ExitStack) -> Any:
    """Start a PostgreSQL that syncs to disk; if that is not possible, print the reason and return None."""
    sys.path.insert(0, str(ROOT))
    from tests.postgres import running_postgres, why_not

    reason = why_not()
    if reason is not None:
        print(f"  PostgreSQL is skipped: {reason}")
        return None
    return stack.enter_context(running_postgres(*_SYNCED))


def _peers(stack: contextlib.ExitStack, database: Any, seconds: float) -> dict[str, tuple[float, float]]:
    """Measure DBOS on the same databases; return rate and processor time by store."""
    python = os.environ.get("BESPEAK_DBOS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import dbos"], capture_output=True, check=False).returncode:
        print("  DBOS is skipped: install it with `pip install dbos` in an environment of its own, and set")
        print("  BESPEAK_DBOS_PYTHON to the interpreter of that environment.")
        return {}
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bespeak-bench-"))
    places = {"sqlite": f"sqlite:///{folder}/dbos.db"}
    if database is not None:
        places["postgres"] = database.new_database()
    found = {}
    for store, url in places.items():
        with on_core(0):
            done = subprocess.run(
                [python, str(PEER), url, str(seconds), "32"], stdout=subprocess.PIPE, check=True, timeout=seconds + 120
            )
        result = json.loads(done.stdout.splitlines()[-1])
        found[store] = (result["rate"], result["cpu_us"])
    return found


def _report(variants: list[Variant], peers: dict[str, tuple[float, float]]) -> None:
    rows = [["three steps (CHAIN)", "workflows/s", "p50 µs", "p99 µs", "CPU µs", "rate of DBOS", "CPU of DBOS"]]
    for variant in variants:
        cpu = median(variant.cpu_us)
        rate, peer_cpu = peers.get(variant.store, (0.0, 0.0))
        rows.append(
            [
                variant.name,
                f"{variant.rate:,.0f}",
                f"{median(load.p50_us for load in variant.rounds):,.0f}",
                f"{median(load.p99_us for load in variant.rounds):,.0f}",
                f"{cpu:,.0f}",
                f"{variant.rate / rate:.0f}x" if rate else "",
                f"1/{peer_cpu / cpu:.0f}" if rate else "",
            ]
        )
    for store, (rate, cpu) in peers.items():
        rows.append([f"DBOS in process, {store}", f"{rate:,.0f}", "", "", f"{cpu:,.0f}", "", ""])
    print(table(rows))
    print()
    goals = {"SQLite": 1000.0, "PostgreSQL": 2000.0}
    for variant in variants:
        if variant.name in goals:
            goal = Goal("", at_least=goals[variant.name], unit="/s")
            print("  " + goal.line(f"{variant.name} at 32 connections", variant.rate))
        if variant.program != "CHAIN" and variant.store in peers:
            ratio = peers[variant.store][1] / median(variant.cpu_us)
            print("  " + Goal("", at_least=20.0, unit="x").line(f"{variant.name} per CPU second, as DBOS", ratio))


def _recover(store: str, folder: Path, place: str) -> None:
    """Leave open workflows as a killed server would, start one, and measure how long it takes to end them."""
    where = place if "://" in place else str(folder / place)
    asyncio.run(_leave_open(where))
    with serving(folder, place) as server:
        begun = time.perf_counter()
        asyncio.run(_wait_for_end(where))
        took = server.start_seconds + time.perf_counter() - begun
        cpu = server.cpu_seconds() / OPEN * 1e6
    goal = Goal("", at_most=5.0, unit=" s")
    print("  " + goal.line(f"{store}: {OPEN:,} open workflows end", took) + f"   {cpu:.0f} CPU µs each")
    print(f"  of which the start of the server took {server.start_seconds:.2f} s")


def _sleep(store: str, folder: Path, place: str) -> None:
    """Let runs sleep until the same time; measure what they cost while they sleep, and how late they wake."""
    where = place if "://" in place else str(folder / place)
    with serving(folder, place) as server:
        idle = _idle(server)
        until, begun = time.time() + 30.0 + SLEEPERS / 250, time.perf_counter()
        told = datetime.fromtimestamp(until, UTC).isoformat()
        begin = contract.agtp_request({"procedure_id": "sleeper", "input": {"until": told}}, "RUN", "/", RUNS)
        begin = begin.replace(b"\r\n", b"\r\nPrefer: respond-async\r\n", 1)
        for _ in range(SLEEPERS):
            server.exchange(begin)
        took, asleep, before = time.perf_counter() - begun, _idle(server), server.cpu_seconds()
        time.sleep(max(until - time.time(), 0.0))
        late = asyncio.run(_lateness(where))
        cpu = (server.cpu_seconds() - before) / SLEEPERS * 1e6
    each = took / SLEEPERS * 1e6
    print(f"  {store}: {SLEEPERS:,} runs sleep; {each:.0f} µs to begin each, one after the other")
    print(f"  {store}: CPU of 3 idle seconds {idle * 1e3:.1f} ms without them, {asleep * 1e3:.1f} ms with them")
    goal = Goal("", at_most=1.0, unit=" s")
    shown = f"   median {late[len(late) // 2]:.2f} s, {cpu:.0f} CPU µs each"
    print("  " + goal.line(f"{store}: the latest of {SLEEPERS:,} that are due at once", late[-1]) + shown)


def _idle(server: ServerProcess) -> float:
    time.sleep(0.5)
    before = server.cpu_seconds()
    time.sleep(3.0)
    return server.cpu_seconds() - before


async def _lateness(where: str) -> list[float]:
    from bespeak.extensions.workflows.store import ReadJournals
    from bespeak.state.store.commands.records import ListRecords

    await _wait_for_end(where)
    async with _opened(where) as store:
        after, found = (0.0, ""), []
        while records := await store.read(ListRecords("workflow", after=after, limit=1000)):
            after = (records[-1].created, records[-1].record_id)
            journals = await store.read(ReadJournals(tuple(one.record_id for one in records)))
            ends = [row for rows in journals.values() for row in rows if row.number == 0]
            found += [json.loads(row.output)["seconds"] for row in ends]
    return sorted(found)


async def _leave_open(where: str) -> None:
    """Store workflows with one of three steps done, of which nobody holds the lease any more."""
    from bespeak.extensions.workflows.spec import Authority, Spec, StepSpec, encode
    from bespeak.extensions.workflows.store import NoteSteps, StepRow
    from bespeak.state.store.commands.records import PutRecord

    agent = "a1" * 32
    authority = Authority(agent_id=agent, scopes=(contract.SCOPE,), headers={"agent-id": agent})
    steps = tuple(StepSpec("BOOK", path, {"guest": "Ann"}) for path in PATHS)
    data = encode(Spec(method="CHAIN", steps=steps, authority=authority, deadline=time.time() + 3600)).decode()
    done = StepRow(1, 1, "done", 200, '{"reservation_id":"1"}')
    async with _opened(where) as store:
        ids = [f"chain-{number:032x}" for number in range(OPEN)]
        await _all(store.do(PutRecord(name, "workflow", agent, "running", data, delay=0.0)) for name in ids)
        await _all(store.do(NoteSteps(name, 0, (done,))) for name in ids)


async def _wait_for_end(where: str) -> None:
    from bespeak.state.store.commands.records import CountRecords

    async with _opened(where) as store:
        while True:
            counts = await store.read(CountRecords())
            if all(each.state == "completed" for each in counts if each.kind == "workflow"):
                return
            await asyncio.sleep(0.05)


async def _carry_out(store_name: str, where: str) -> None:
    """Spread due records over some seconds, and measure how late the latest is carried out."""
    from bespeak.runtime.background import DueLoop
    from bespeak.state.store.commands.records import ChangeRecord, PutRecord, Record

    latest, left, ended = 0.0, DUE, asyncio.Event()
    async with _opened(where) as store:
        start = time.time() + 3600.0

        async def carry(records: Sequence[Record]) -> None:
            nonlocal latest, left
            await asyncio.gather(
                *(
                    store.do(ChangeRecord(one.record_id, ("due",), ("open",), "done", fence=one.fence))
                    for one in records
                )
            )
            now = time.time()
            latest = max(latest, *(now - float(one.data) for one in records))
            left -= len(records)
            if left <= 0:
                ended.set()

        filled = time.perf_counter()
        sample = [PutRecord(f"sample-{number}", "due", "ann", "open", "0", due=start) for number in range(1000)]
        await _all(store.do(command) for command in sample)
        # Far enough away that all are stored before the first is due.
        start = time.time() + 2.0 * DUE / 1000 * (time.perf_counter() - filled) + 2.0
        times = [start + SPREAD * number / DUE for number in range(DUE)]
        await _all(
            store.do(PutRecord(f"due-{number:08}", "due", "ann", "open", repr(at), due=at))
            for number, at in enumerate(times)
        )
        loop = DueLoop(store, {"due": carry})
        loop.start()
        cpu = time.process_time()
        await ended.wait()
        used = (time.process_time() - cpu) / DUE * 1e6
        await loop.stop()
    label = f"{store_name}: {DUE:,} records in {SPREAD:g} s, the latest"
    print("  " + Goal("", at_most=1.0, unit=" s").line(label, latest) + f"   {used:.0f} CPU µs")


@contextlib.asynccontextmanager
async def _opened(where: str) -> Any:
    from bespeak.state.store.settings import open_store

    store = open_store(where)
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def _all(work: Any) -> None:
    """Await everything, some hundreds at a time."""
    group = []
    for one in work:
        group.append(one)
        if len(group) == 500:
            await asyncio.gather(*group)
            group = []
    await asyncio.gather(*group)
