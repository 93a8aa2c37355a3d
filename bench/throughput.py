"""Requests per second beside the peers: the same job, the same core, the same loader, in interleaved rounds."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import contract
from load import Load, Loader
from process import ServerProcess, free_port, running
from report import Goal, table

SERVERS = Path(__file__).resolve().parent / "servers"


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that can do the job, and how it is asked."""

    name: str
    command: Callable[[int], list[str]]
    request: Callable[[object], bytes]
    needs: tuple[str, ...] = ()
    """Packages outside bespeak's own dependencies."""


def _script(name: str) -> Callable[[int], list[str]]:
    return lambda port: [str(SERVERS / name), str(port)]


def _bespeak(port: int) -> list[str]:
    return ["-m", "bespeak", "serve", f"{SERVERS / 'bespeak_app.py'}:app", "--agtp", f"127.0.0.1:{port}"]


BESPEAK, CEILING, FASTAPI, MCP = "bespeak", "realistic ceiling", "FastAPI on uvicorn", "MCP SDK on uvicorn"

CONTENDERS = (
    Contender(BESPEAK, _bespeak, contract.agtp_request),
    Contender(CEILING, _script("ceiling.py"), contract.agtp_request, ("orjson",)),
    Contender(FASTAPI, _script("fastapi_app.py"), contract.http_request, ("fastapi", "uvicorn", "httptools")),
    Contender(MCP, _script("mcp_app.py"), contract.mcp_request, ("mcp", "uvicorn", "httptools")),
)

GOALS = (
    Goal(CEILING, at_least=0.70, aim=0.85),
    Goal(FASTAPI, at_least=5.0),
    Goal(MCP, at_least=10.0),
)


@dataclass(slots=True)
class Measured:
    """A running contender and its rounds."""

    contender: Contender
    server: ServerProcess
    rounds: list[Load] = field(default_factory=list)


def check(contender: Contender, server: ServerProcess) -> None:
    """A server that does not do the job is not measured: it must book, and it must refuse a broken date."""
    booked = server.exchange(contender.request(contract.GOOD))
    if b" 200 " not in booked[:20] or b"reservation_id" not in booked:
        raise RuntimeError(f"{contender.name} did not book a room: {booked[:600]!r}")
    refused = server.exchange(contender.request(contract.BAD))
    if b" 200 " in refused[:20] and b'"isError":true' not in refused:
        raise RuntimeError(f"{contender.name} accepted a date that is none: {refused[:600]!r}")


def measure(loader: Loader, *, rounds: int, seconds: float, connections: int, depth: int) -> bool:
    """Run all contenders, print the table and the goals; whether every reply was a 200."""
    with contextlib.ExitStack() as stack:
        field_of: list[Measured] = []
        for contender in CONTENDERS:
            missing = [name for name in contender.needs if importlib.util.find_spec(name) is None]
            if missing:
                print(f"  {contender.name} is left out: pip install {' '.join(missing)}")
                continue
            port = free_port()
            server = stack.enter_context(running(contender.command(port), port))
            check(contender, server)
            loader.run(
                port, contender.request(contract.GOOD), seconds=min(seconds, 1), connections=connections, depth=depth
            )
            field_of.append(Measured(contender, server))
        for _ in range(rounds):
            for entry in field_of:
                request = entry.contender.request(contract.GOOD)
                entry.rounds.append(
                    loader.run(entry.server.port, request, seconds=seconds, connections=connections, depth=depth)
                )
        _report(field_of)
    return not any(load.errors for entry in field_of for load in entry.rounds)


def _ratio(mine: Measured, theirs: Measured) -> float:
    """Median of the ratios within each round, so that a slow minute of the machine counts on both sides."""
    return median(a.rps / b.rps for a, b in zip(mine.rounds, theirs.rounds, strict=True))


def _report(entries: list[Measured]) -> None:
    by_name = {entry.contender.name: entry for entry in entries}
    ceiling = by_name.get(CEILING)
    rows = [["server", "requests/s", "p50 µs", "p99 µs", "RSS MB", "of ceiling", "errors"]]
    rows += [
        [
            entry.contender.name,
            f"{median(load.rps for load in entry.rounds):,.0f}",
            f"{median(load.p50_us for load in entry.rounds):,.0f}",
            f"{median(load.p99_us for load in entry.rounds):,.0f}",
            f"{entry.server.rss_mb():.0f}",
            f"{_ratio(entry, ceiling):.0%}" if ceiling else "-",
            str(sum(load.errors for load in entry.rounds)),
        ]
        for entry in entries
    ]
    print(table(rows))
    print()
    mine = by_name[BESPEAK]
    for goal in GOALS:
        if goal.subject in by_name:
            print("  " + goal.line(f"bespeak / {goal.subject}", _ratio(mine, by_name[goal.subject])))
