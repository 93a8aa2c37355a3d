"""How many needs a core matches with endpoints in a second, and how long an index of them takes."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from report import Goal, table

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.matching.vectors import Backend, installed_backends

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "matching"))
from fit import make_endpoint, read_needs, write_need

RATE = Goal("matches", at_least=1_000, unit="/s")
GOAL_SIZE = 200
SIZES = (GOAL_SIZE, 10_000)
NEEDS = 500
SLOW = "minilm"  # a model of sentences takes milliseconds for each text, so it is measured on the small catalogue only


def measure() -> bool:
    """Print matches per second of processor time for each backend and size; return True if the goal is met."""
    rows = [["endpoints", "backend", "index s", "again s", "matches/s"]]
    verdicts, good = [], True
    for size in SIZES:
        endpoints, needs = _catalogue(size)
        for backend in installed_backends():
            if backend.name == SLOW and size > GOAL_SIZE:
                continue
            made, again, rate = _measure(endpoints, needs, backend)
            rows.append([f"{size:,}", backend.name, f"{made:.2f}", f"{again:.2f}", f"{rate:,.0f}"])
            if size == GOAL_SIZE and backend.name != SLOW:
                verdicts.append("  " + RATE.line(f"{size} endpoints, {backend.name}", rate))
                good = good and RATE.met(rate)
    print(table(rows))
    print()
    print("\n".join(verdicts))
    return good


def _catalogue(size: int) -> tuple[list[Endpoint], list[str]]:
    """Return endpoints, and needs that differ from each other."""
    written, asked, nothing = read_needs()
    rng = random.Random(size)
    endpoints = [
        one
        if place < len(written)
        else make_endpoint(one.method, f"{one.path}/{rng.choice(asked).service}-{place}", one.semantic.intent, ["id"])
        for place, one in ((place, written[place % len(written)]) for place in range(size))
    ]
    needs = dict.fromkeys(write_need(rng.choice(written), rng) for _ in range(2 * NEEDS))
    return endpoints, [*nothing, *needs][:NEEDS]


def _measure(endpoints: list[Endpoint], needs: list[str], backend: Backend) -> tuple[float, float, float]:
    times = []
    for _ in range(2):
        started = time.process_time()
        index = EndpointIndex(endpoints, backend=backend)
        index.match("anything at all")  # loads the vectors
        times.append(time.process_time() - started)
    started = time.process_time()
    for need in needs:
        index.match(need)
    return times[0], times[1], len(needs) / (time.process_time() - started)


if __name__ == "__main__":
    sys.exit(0 if measure() else 1)
