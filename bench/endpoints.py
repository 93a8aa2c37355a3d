"""Ten thousand endpoints: start time, dispatch time compared with ten endpoints, and manifest time."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from load import Loader
from report import Goal, table

import contract
from process import Peer, ServerProcess, free_port, running

MANY, FEW = 10_000, 10
ASKED = 4_096
"""Number of requests in the mix, spread over all endpoints. Each has its own Task-ID, so that only dispatch differs."""

APP = Path(__file__).resolve().parent / "servers" / "many_app.py"

START = Goal("start", at_most=3, unit=" s")
DISPATCH = Goal("dispatch", at_least=0.9)

_CONFIG = """\
[server]
server_id = "many.acme.example"
operator = "Acme"
contact = "ops@acme.example"
"""

_ENDPOINT = """\
[endpoint]
method = "{method}"
path = "{path}"
description = "Reserves a room at hotel {number}."
required_scopes = ["{scope}"]

[endpoint.semantic]
intent = "Reserve a room for the named guest at the named property."
actor = "agent"
outcome = "A confirmed reservation exists and its reservation_id is returned."
capability = "transaction"
confidence = 0.95
impact = "irreversible"
is_idempotent = false

[endpoint.input_schema]
type = "object"
required = ["guest_id", "room_id", "arrival", "departure"]
additionalProperties = false

[endpoint.input_schema.properties]
guest_id = {{ type = "string", format = "uuid" }}
room_id = {{ type = "string", minLength = 1, maxLength = {longest} }}
arrival = {{ type = "string", format = "date" }}
departure = {{ type = "string", format = "date" }}

[endpoint.output_schema]
type = "object"
required = ["reservation_id"]

[endpoint.output_schema.properties]
reservation_id = {{ type = "string", format = "uuid" }}

[endpoint.errors]
list = ["room_unavailable"]

[endpoint.handler]
type = "registered_function"
function = "contract.book_room"
"""

WARM_UP = 3.0
"""Seconds for the first request to every endpoint, which compiles its schemas."""


def write_folder(folder: Path, count: int) -> None:
    """Write a deployment with one TOML file per endpoint; all schemas differ."""
    (folder / "bespeak.toml").write_text(_CONFIG)
    directory = folder / "endpoints"
    directory.mkdir()
    for number in range(count):
        text = _ENDPOINT.format(
            method=contract.METHOD,
            path=contract.path_of(number),
            number=number,
            scope=contract.SCOPE,
            longest=64 + number,
        )
        (directory / f"hotel-{number:05}.toml").write_text(text)


@contextlib.contextmanager
def serving(target: str, count: int = 0) -> Iterator[ServerProcess]:
    """Run `bespeak serve` for a folder, or for the App with that many endpoints."""
    os.environ["BESPEAK_BENCH_ENDPOINTS"] = str(count)
    port = free_port()
    with running(
        ["-m", "bespeak", "serve", target, "--agtp", f"127.0.0.1:{port}", "--store", "memory"], port
    ) as server:
        reply = server.exchange(contract.request_of(0))
        if b" 200 " not in reply[:20]:
            raise RuntimeError(f"{target} did not book a room: {reply[:600]!r}")
        yield server


def measure(loader: Loader, *, rounds: int, seconds: float) -> bool:
    """Print start times, the dispatch ratio and manifest times; return True if every reply was a 200."""
    with tempfile.TemporaryDirectory() as name:
        write_folder(Path(name), MANY)
        with serving(name) as server:
            from_folder = server.start_seconds
            folder_rss = server.rss_mb()
    with serving(f"{APP}:app", FEW) as few, serving(f"{APP}:app", MANY) as many:
        errors = _dispatch(loader, few, many, rounds=rounds, seconds=seconds)
        print()
        print("  " + START.line("start from 10,000 TOML files", from_folder) + f"   ({folder_rss:.0f} MB)")
        print("  " + START.line("start from an App", many.start_seconds) + f"   ({many.rss_mb():.0f} MB)")
        print(f"  {'start from an App with 10 endpoints':<44} {few.start_seconds:>9.2f} s")
        _manifest(many)
    return not errors


def _dispatch(loader: Loader, few: ServerProcess, many: ServerProcess, *, rounds: int, seconds: float) -> int:
    """Run interleaved rounds on both servers, with equally many different requests; return the number of errors."""
    mixes = {FEW: _mix(FEW), MANY: _mix(MANY)}
    rates: dict[int, list[float]] = {FEW: [], MANY: []}
    costs: dict[int, list[float]] = {FEW: [], MANY: []}
    errors = 0
    for turn in range(rounds + 1):
        for count, server in ((FEW, few), (MANY, many)):
            before = server.cpu_seconds()
            load = loader.run(server.port, mixes[count], seconds=seconds if turn else WARM_UP)
            errors += load.errors
            if turn:
                rates[count].append(load.rps)
                costs[count].append((server.cpu_seconds() - before) / load.requests * 1e6)
    rows = [["endpoints", "requests/s", "CPU µs"]]
    rows += [[f"{count:,}", f"{median(rates[count]):,.0f}", f"{median(costs[count]):,.1f}"] for count in rates]
    print(table(rows))
    ratio = median(a / b for a, b in zip(rates[MANY], rates[FEW], strict=True))
    by_cpu = f"   (by processor time {median(costs[FEW]) / median(costs[MANY]):.2f}x)"
    print("\n  " + DISPATCH.line("dispatch, 10,000 / 10 endpoints", ratio) + by_cpu)
    return errors


def _mix(count: int) -> bytes:
    """Return requests spread over all endpoints, alternating between literal paths and templates."""
    spread = (index * count // ASKED for index in range(ASKED))
    return b"".join(
        contract.with_task_id(contract.request_of(number - number % 2 + index % 2), index)
        for index, number in enumerate(spread)
    )


def _manifest(server: ServerProcess) -> None:
    """Measure DISCOVER: the first one builds the manifest, the others only send it."""
    request = b"AGTP/1.0 DISCOVER /\r\nContent-Length: 0\r\n\r\n"
    peer = Peer(server.port)
    times, size = [], 0
    for _ in range(11):
        start = time.perf_counter()
        size = len(peer.exchange(request))
        times.append(time.perf_counter() - start)
    peer.close()
    print(
        f"  manifest of {size / 1e6:.1f} MB: first DISCOVER {times[0] * 1e3:.0f} ms, "
        f"then {median(times[1:]) * 1e3:.1f} ms (median of {len(times) - 1})"
    )
