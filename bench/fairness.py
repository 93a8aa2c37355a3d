"""What one agent with many connections costs another agent with one: the time of a call, alone and beside it."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from report import Goal, table

import contract
from process import Peer, ServerProcess, free_port, on_core, running

CONNECTIONS = 16
SMALL = "small call"
BUSY, OTHER = "a1" * 32, "b2" * 32
_CONFIGURATION = """\
[server]
server_id = "rooms.acme.example"
operator = "Acme"
contact = "ops@acme.example"
app = "servers.crowded_app:app"

[store]
place = "state.db"

[policies]
synthesis_enabled = true

[methods]
enable = ["BATCH", "REPORT"]
"""
_STEP = {"method": "FETCH", "path": "/room", "parameters": {"room_id": "12"}}
WORK: dict[str, tuple[str, str, Any]] = {
    SMALL: ("FETCH", "/room", {"room_id": "12"}),
    "result of 4 MB": ("FETCH", "/rooms", {}),
    "BATCH of 1,000": ("BATCH", "/", {"calls": [_STEP] * 1000}),
    "report as PDF": (
        "REPORT",
        "/",
        {"report_type": "data", "scope": {"data": "rooms"}, "format": "pdf", "recipient": BUSY},
    ),
}


def measure(*, seconds: float) -> bool:
    """Measure a small call and each kind of work, alone and beside a busy agent; print the table and the goals."""
    rows = [("work of the busy agent", "small call", "beside it", "ratio", "same work", "beside it", "ratio")]
    goals = []
    with tempfile.TemporaryDirectory(prefix="bespeak-bench-") as name:
        (Path(name) / "bespeak.toml").write_text(_CONFIGURATION)
        for work in WORK:
            small, same = _compare(name, work, seconds)
            rows.append((work, *_cells(small), *_cells(same)))
            if work != SMALL:
                goals.append(Goal("fairness", at_most=2.0).line(f"the same work, {work}", same[1] / same[0]))
    print(table(rows))
    print(*goals, sep="\n")
    return True


def _compare(folder: str, work: str, seconds: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the times of a small call and of the same work, each alone and beside the busy agent."""
    port = free_port()
    with running(["-m", "bespeak", "serve", folder, "--agtp", f"127.0.0.1:{port}"], port) as server:
        alone = _time(server, SMALL, seconds), _time(server, work, seconds)
        with _busy(server.port, work):
            beside = _time(server, SMALL, seconds), _time(server, work, seconds)
    return (alone[0], beside[0]), (alone[1], beside[1])


def _cells(times: tuple[float, float]) -> tuple[str, str, str]:
    return f"{times[0] * 1e3:.2f} ms", f"{times[1] * 1e3:.2f} ms", f"{times[1] / times[0]:.1f}"


def _request(work: str, agent: str) -> bytes:
    method, path, payload = WORK[work]
    return contract.agtp_request(payload, method, path).replace(BUSY.encode(), agent.encode(), 1)


def _time(server: ServerProcess, work: str, seconds: float) -> float:
    """Return the median time of a call of the other agent."""
    peer, request, times = Peer(server.port), _request(work, OTHER), []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begun = time.perf_counter()
        reply = peer.exchange(request)
        times.append(time.perf_counter() - begun)
        if not reply.startswith(b"AGTP/1.0 200"):
            raise RuntimeError(f"{work} failed: {reply[:600]!r}")
    peer.close()
    return median(times)


@contextmanager
def _busy(port: int, work: str) -> Iterator[None]:
    """Keep all connections of the busy agent at work."""
    with on_core(1):
        processes = [
            multiprocessing.Process(target=_repeat, args=(port, _request(work, BUSY)), daemon=True)
            for _ in range(CONNECTIONS)
        ]
        for process in processes:
            process.start()
    time.sleep(1.0)
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _repeat(port: int, request: bytes) -> None:
    peer = Peer(port)
    end = time.perf_counter() + 120
    while time.perf_counter() < end:
        peer.exchange(request)


if __name__ == "__main__":
    measure(seconds=2.0)
