"""MCP over HTTP: calls per processor second of the server, compared with FastMCP and the SDK's own servers."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median

from load import Loader
from report import Goal, table
from throughput import SERVERS, Contender, Measured, Shape, check, compete

import contract
from process import ServerProcess, free_port, running

BESPEAK, FASTMCP, SDK, LOW_LEVEL = "bespeak", "FastMCP", "SDK, MCPServer", "SDK, low-level"
STREAMS = "SDK, low-level, sessions"
TOLD = "bespeak, with a progress token"
"""What FastMCP's client sends with every call, and others with many."""

TOOLS = (1, 60)
"""Numbers of tools that a server offers."""

MODERN_GOALS = (Goal(FASTMCP, at_least=8.0), Goal(SDK, at_least=3.0), Goal(LOW_LEVEL, at_least=3.0))
LEGACY_GOALS = (Goal(SDK, at_least=1.0), Goal(LOW_LEVEL, at_least=1.0))
SESSION_GOALS = (Goal(STREAMS, at_least=1.0),)

_SESSION = re.compile(rb"\r\nmcp-session-id:[ \t]*([0-9a-f]+)", re.IGNORECASE)
_START = {"protocolVersion": contract.LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def _peer(script: str, *more: str) -> Callable[[int], list[str]]:
    return lambda port: [str(SERVERS / script), str(port), os.environ["BESPEAK_BENCH_TOOLS"], *more]


def _bespeak(store: str = "memory", *more: str) -> Callable[[int], list[str]]:
    serve = ["-m", "bespeak", "serve", f"{SERVERS / 'tools_app.py'}:app", "--agtp", "127.0.0.1:0", "--store", store]
    return lambda port: [*serve, "--mcp", "--http", f"127.0.0.1:{port}", *more]


def measure(loader: Loader, shape: Shape) -> bool:
    """Run the comparisons and print them; return True if every reply was a 200."""
    missing = [name for name in ("fastmcp", "mcp") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  skipped: {' and '.join(missing)} not installed (make bench does it)")
        return True
    request = contract.mcp_request
    modern = (
        Contender(BESPEAK, _bespeak(), request),
        Contender(TOLD, _bespeak(), partial(request, progressToken=1)),
        Contender(FASTMCP, _peer("fastmcp_app.py"), request),
        Contender(SDK, _peer("mcp_app.py"), request),
        Contender(LOW_LEVEL, _peer("mcp_lowlevel_app.py"), request),
    )
    good = True
    for count in TOOLS:
        os.environ["BESPEAK_BENCH_TOOLS"] = str(count)
        title = f"{contract.MODERN}, {count} tool{'s' if count > 1 else ''}"
        good &= _compare(loader, shape, title, modern, MODERN_GOALS)
    os.environ["BESPEAK_BENCH_TOOLS"] = "1"
    plain = contract.legacy_request
    peers = tuple(Contender(each.name, each.command, plain) for each in modern[2:])
    with tempfile.TemporaryDirectory() as folder:
        # Only a server of several workers keeps no sessions.
        mine = Contender(BESPEAK, _bespeak(f"{folder}/bench.db", "--workers", "2"), plain)
        title = f"{contract.LEGACY}, without sessions"
        good &= _compare(loader, shape, title, (mine, *peers), LEGACY_GOALS)
    sessions = (
        Contender(BESPEAK, _bespeak(), plain),
        Contender(STREAMS, _peer("mcp_lowlevel_app.py", "sessions"), plain),
    )
    good &= _compare(loader, shape, f"{contract.LEGACY}, in a session", sessions, SESSION_GOALS, opens=True)
    return good


def _compare(
    loader: Loader,
    shape: Shape,
    title: str,
    contenders: tuple[Contender, ...],
    goals: tuple[Goal, ...],
    *,
    opens: bool = False,
) -> bool:
    """Measure servers and print the table and the goals; with `opens`, each in a session of its own."""
    with contextlib.ExitStack() as stack:
        entries = []
        for each in contenders:
            port = free_port()
            server = stack.enter_context(running(each.command(port), port))
            contender = _in_session(each, server) if opens else each
            check(contender, server)
            entries.append(Measured(contender, server, contender.request(contract.GOOD)))
            loader.run(port, entries[-1].requests, seconds=min(shape.seconds, 1), connections=shape.connections)
        compete(loader, shape, entries)
        rows = [[title, "calls/CPU s", "calls/s", "p50 µs", "CPU µs", "errors"]]
        rows += [
            [
                entry.contender.name,
                f"{1e6 / median(entry.cpu_us):,.0f}",
                f"{median(load.rps for load in entry.rounds):,.0f}",
                f"{median(load.p50_us for load in entry.rounds):,.0f}",
                f"{median(entry.cpu_us):,.1f}",
                str(sum(load.errors for load in entry.rounds)),
            ]
            for entry in entries
        ]
        print(table(rows) + "\n")
        mine, *others = entries
        by_name = {entry.contender.name: entry for entry in others}
        for goal in goals:
            print("  " + goal.line(f"bespeak / {goal.subject}", mine.cpu_ratio(by_name[goal.subject])))
        print()
        return not any(load.errors for entry in entries for load in entry.rounds)


def _in_session(contender: Contender, server: ServerProcess) -> Contender:
    """Open a session with a server; return the contender whose calls belong to it."""
    opened = server.exchange(contract.mcp_message("initialize", _START, ""))
    found = _SESSION.search(opened)
    if found is None:
        raise RuntimeError(f"{contender.name} did not open a session: {opened[:600]!r}")
    session = found[1].decode()
    server.exchange(
        contract.mcp_message("notifications/initialized", {}, contract.legacy_headers(session), notifies=True)
    )
    return Contender(contender.name, contender.command, lambda payload: contract.legacy_request(payload, session))
