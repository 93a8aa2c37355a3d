"""Requests per second compared with peers: the same contract, core and load generator, in interleaved rounds."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from load import Load, Loader
from report import Goal, table

import contract
from process import ServerProcess, free_port, running

SERVERS = Path(__file__).resolve().parent / "servers"


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that implements the contract, and how to call it."""

    name: str
    command: Callable[[int], list[str]]
    request: Callable[[object], bytes]
    needs: tuple[str, ...] = ()
    """Required packages that bespeak does not depend on."""


def _script(name: str) -> Callable[[int], list[str]]:
    return lambda port: [str(SERVERS / name), str(port)]


def _bespeak(port: int) -> list[str]:
    app = f"{SERVERS / 'bespeak_app.py'}:app"
    return ["-m", "bespeak", "serve", app, "--agtp", f"127.0.0.1:{port}", "--store", "memory"]


BESPEAK, CEILING, MCP = "bespeak, async def", "realistic ceiling", "MCP SDK on uvicorn"
FASTAPI = "FastAPI on uvicorn, async def"
THREADED, FASTAPI_THREADED = "bespeak, def in a thread", "FastAPI on uvicorn, def"
LIMIT = "limit of Python"

LIMIT_VARIABLE = "BESPEAK_LIMIT_SERVER"
LIMIT_PLACE = Path(__file__).resolve().parents[2] / "shared" / "limit" / "server.py"
"""A server written by hand for this one endpoint; beside the repository unless the variable gives its path."""


def _limit(port: int) -> list[str]:
    return [os.environ.get(LIMIT_VARIABLE) or str(LIMIT_PLACE), str(port)]


def _ask_limit(payload: object) -> bytes:
    return contract.agtp_request(payload, scope="booking:write")


CONTENDERS = (
    Contender(LIMIT, _limit, _ask_limit, ("orjson",)),
    Contender(BESPEAK, _bespeak, contract.agtp_request),
    Contender(CEILING, _script("ceiling.py"), contract.agtp_request, ("orjson",)),
    Contender(FASTAPI, _script("fastapi_app.py"), contract.http_request, ("fastapi", "uvicorn", "httptools")),
    Contender(THREADED, _bespeak, partial(contract.agtp_request, path=contract.THREADED)),
    Contender(
        FASTAPI_THREADED,
        _script("fastapi_app.py"),
        partial(contract.http_request, path=contract.THREADED),
        ("fastapi", "uvicorn", "httptools"),
    ),
    Contender(MCP, _script("mcp_app.py"), contract.mcp_request, ("mcp", "uvicorn", "httptools")),
)

GOALS = (
    Goal(CEILING, at_least=0.70, aim=0.85),
    Goal(LIMIT, at_least=0.60),
    Goal(FASTAPI, at_least=5.0),
    Goal(MCP, at_least=10.0),
)
THREADED_GOALS = (Goal(FASTAPI_THREADED, at_least=3.0),)


CHANGING: tuple[tuple[Callable[[bytes, int], bytes], str, tuple[Goal, ...]], ...] = (
    (
        contract.with_task_id,
        "a different Task-ID in every request",
        (Goal(CEILING, at_least=0.70, aim=0.85), Goal(LIMIT, at_least=0.50)),
    ),
    (
        contract.with_request_id,
        "the Host and a different Request-ID in every request",
        (Goal(CEILING, at_least=0.70, aim=0.85), Goal(LIMIT, at_least=0.65)),
    ),
)
"""Requests with different heads, and their goals."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Amount and duration of the load."""

    rounds: int
    seconds: float
    connections: int
    depth: int


@dataclass(slots=True)
class Measured:
    """A running server and its rounds with one kind of request."""

    contender: Contender
    server: ServerProcess
    requests: bytes
    rounds: list[Load] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    """Processor time per request, by round."""

    def run_round(self, loader: Loader, shape: Shape) -> None:
        """Run one more round."""
        before = self.server.cpu_seconds()
        load = loader.run(
            self.server.port, self.requests, seconds=shape.seconds, connections=shape.connections, depth=shape.depth
        )
        self.rounds.append(load)
        self.cpu_us.append((self.server.cpu_seconds() - before) / load.requests * 1e6)

    def ratio(self, other: Measured) -> float:
        """Return the median of the ratios within each round, so that a slow minute of the machine affects both
        sides.
        """
        return median(mine.rps / theirs.rps for mine, theirs in zip(self.rounds, other.rounds, strict=True))

    def cpu_ratio(self, other: Measured) -> float:
        """Return the same ratio in processor time, which other load on the machine hardly changes."""
        return median(theirs / mine for mine, theirs in zip(self.cpu_us, other.cpu_us, strict=True))


def check(contender: Contender, server: ServerProcess) -> None:
    """Raise if a server does not implement the contract: it must book, and must refuse an invalid date."""
    booked = server.exchange(contender.request(contract.GOOD))
    if b" 200 " not in booked[:20] or b"reservation_id" not in booked:
        raise RuntimeError(f"{contender.name} did not book a room: {booked[:600]!r}")
    refused = server.exchange(contender.request(contract.BAD))
    if b" 200 " in refused[:20] and b'"isError":true' not in refused:
        raise RuntimeError(f"{contender.name} accepted an invalid date: {refused[:600]!r}")


def copies(request: bytes, change: Callable[[bytes, int], bytes]) -> bytes:
    """Copy a request with different heads, more than a server caches."""
    return b"".join(change(request, number) for number in range(4096))


def measure(loader: Loader, shape: Shape) -> bool:
    """Run all servers, print the tables and the goals; return True if every reply was a 200."""
    with contextlib.ExitStack() as stack:
        entries: list[Measured] = []
        for contender in CONTENDERS:
            missing = [name for name in contender.needs if importlib.util.find_spec(name) is None]
            if missing:
                print(f"  {contender.name} is skipped: pip install {' '.join(missing)}")
                continue
            if contender.name == LIMIT and not Path(_limit(0)[0]).is_file():
                print(f"  {LIMIT} is skipped: {_limit(0)[0]} does not exist; set {LIMIT_VARIABLE} to its server.py")
                continue
            port = free_port()
            server = stack.enter_context(running(contender.command(port), port))
            check(contender, server)
            entry = Measured(contender, server, contender.request(contract.GOOD))
            loader.run(port, entry.requests, seconds=min(shape.seconds, 1), connections=shape.connections)
            entries.append(entry)
        compete(loader, shape, entries)
        _report(entries, GOALS)
        _compare(entries, THREADED, THREADED_GOALS)
        measured = [*entries]
        by_hand = [entry for entry in entries if entry.contender.name in (BESPEAK, CEILING, LIMIT)]
        for change, what, goals in CHANGING:
            changing = [Measured(entry.contender, entry.server, copies(entry.requests, change)) for entry in by_hand]
            compete(loader, shape, changing)
            print(f"\n  The same with {what}:")
            _report(changing, goals)
            measured += changing
    return not any(load.errors for entry in measured for load in entry.rounds)


def compete(loader: Loader, shape: Shape, entries: list[Measured]) -> None:
    """Measure all in turn, round by round."""
    for _ in range(shape.rounds):
        for entry in entries:
            entry.run_round(loader, shape)


def _report(entries: list[Measured], goals: tuple[Goal, ...]) -> None:
    by_name = {entry.contender.name: entry for entry in entries}
    ceiling = by_name.get(CEILING)
    rows = [["server", "requests/s", "p50 µs", "p99 µs", "CPU µs", "RSS MB", "of ceiling", "errors"]]
    rows += [
        [
            entry.contender.name,
            f"{median(load.rps for load in entry.rounds):,.0f}",
            f"{median(load.p50_us for load in entry.rounds):,.0f}",
            f"{median(load.p99_us for load in entry.rounds):,.0f}",
            f"{median(entry.cpu_us):,.1f}",
            f"{entry.server.rss_mb():.0f}",
            f"{entry.ratio(ceiling):.0%}" if ceiling else "-",
            str(sum(load.errors for load in entry.rounds)),
        ]
        for entry in entries
    ]
    print(table(rows))
    print()
    _compare(entries, BESPEAK, goals)


def _compare(entries: list[Measured], name: str, goals: tuple[Goal, ...]) -> None:
    by_name = {entry.contender.name: entry for entry in entries}
    mine = by_name[name]
    for goal in goals:
        if goal.subject in by_name:
            theirs = by_name[goal.subject]
            by_rate = f"   (by requests/s {mine.ratio(theirs):.2f}x)"
            kind = " in a thread" if name == THREADED else ""
            print("  " + goal.line(f"bespeak{kind} / {goal.subject}, CPU", mine.cpu_ratio(theirs)) + by_rate)
