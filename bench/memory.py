"""Memory of an idle server, and its growth with the number of requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from load import Loader
from report import Goal, table

import contract
from process import free_port, running

ROOT = Path(__file__).resolve().parent.parent
WARM_UP = 30_000
TIME_LIMIT = 300.0

IDLE = Goal("idle", at_most=80, unit=" MB")
GROWTH = Goal("growth", at_most=1, unit=" MB")
"""Allowed growth in MB. The allocator rounds to pages and arenas; a leak of one small object per request would be 5
MB or more.
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A service and a request that leaves no state behind."""

    name: str
    target: str
    request: Callable[[], bytes]


SUBJECTS = (
    Subject(
        "examples/hotel/app.py, QUERY /rooms",
        f"{ROOT / 'examples' / 'hotel' / 'app.py'}:app",
        lambda: contract.agtp_request({}, "QUERY", "/rooms"),
    ),
    Subject(
        "BOOK /room of this bench",
        f"{ROOT / 'bench' / 'servers' / 'bespeak_app.py'}:app",
        lambda: contract.agtp_request(contract.GOOD),
    ),
)


def measure(loader: Loader, *, requests: int) -> bool:
    """Print resident memory when idle, warm and after `requests` more; return True if every reply was a 200."""
    rows = [["service", "idle MB", f"after {WARM_UP:,}", f"after {requests:,} more", "growth MB"]]
    verdicts, errors = [], 0
    for subject in SUBJECTS:
        port = free_port()
        with running(
            ["-m", "bespeak", "serve", subject.target, "--agtp", f"127.0.0.1:{port}", "--store", "memory"], port
        ) as server:
            idle = server.rss_mb()
            errors += loader.run(port, subject.request(), seconds=TIME_LIMIT, limit=WARM_UP).errors
            warm = server.rss_mb()
            errors += loader.run(port, subject.request(), seconds=TIME_LIMIT, limit=requests).errors
            after = server.rss_mb()
        rows.append([subject.name, f"{idle:.1f}", f"{warm:.1f}", f"{after:.1f}", f"{after - warm:+.1f}"])
        verdicts.append("  " + IDLE.line(f"idle: {subject.name}", idle))
        verdicts.append("  " + GROWTH.line(f"growth: {subject.name}", after - warm))
    print(table(rows))
    print()
    print("\n".join(verdicts))
    return not errors
