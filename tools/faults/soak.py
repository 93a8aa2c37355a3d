"""Every kind of fault in turn, with different seeds, until the time is over or a fault is found.

python -m tools.faults.soak --minutes 10
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable

from tests.postgres import why_not
from tools.faults import disk, kill, machines, outage, queues, retries, workflows

Run = Callable[[int], int]
"""A run with a seed; returns the exit code."""


def runs(*, postgres: bool, network: bool) -> list[Run]:
    """Return the runs, each of about half a minute."""
    found: list[Run] = [
        lambda seed: kill.run("sqlite", rounds=15, clients=32, workers=1, seed=seed),
        lambda seed: kill.run("sqlite", rounds=6, clients=32, workers=2, seed=seed),
        lambda seed: kill.run("sqlite", rounds=6, clients=16, workers=1, seed=seed, audited=False),
        lambda seed: disk.run(rounds=10, clients=16, seed=seed),
        lambda seed: disk.run(rounds=10, clients=16, seed=seed, mounted=False),
        lambda seed: workflows.run("sqlite", rounds=8, clients=24, seed=seed),
        lambda seed: workflows.run("sqlite", rounds=4, clients=16, seed=seed, workers=2),
        lambda seed: retries.run(rounds=15, seed=seed),
        lambda seed: queues.run("sqlite", rounds=6, clients=16, seed=seed),
        lambda seed: queues.run("sqlite", rounds=4, clients=16, seed=seed, workers=2, audited=False),
    ]
    if postgres:
        found += [
            lambda seed: kill.run("postgres", rounds=10, clients=32, workers=1, seed=seed),
            lambda seed: kill.run("postgres", rounds=6, clients=32, workers=2, seed=seed),
            lambda seed: kill.run("postgres", rounds=6, clients=16, workers=2, seed=seed, audited=False),
            lambda seed: outage.run(rounds=6, clients=16, workers=1, seed=seed),
            lambda seed: outage.run(rounds=3, clients=16, workers=2, seed=seed),
            lambda seed: workflows.run("postgres", rounds=6, clients=24, seed=seed, workers=2),
            lambda seed: workflows.run("postgres", rounds=4, clients=12, seed=seed, harm="machine"),
            lambda seed: workflows.run("postgres", rounds=4, clients=16, seed=seed, harm="database"),
            lambda seed: queues.run("postgres", rounds=4, clients=16, seed=seed, workers=2),
            lambda seed: queues.run("postgres", rounds=4, clients=12, seed=seed, harm="machine"),
            lambda seed: queues.run("postgres", rounds=3, clients=12, seed=seed, harm="database", audited=False),
        ]
    if network:
        found += [
            lambda seed: machines.run(rounds=2, clients=8, seed=seed),
            lambda seed: machines.run(rounds=2, clients=8, seed=seed, audited=False),
        ]
    return found


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0, help="minutes after which no further run is started")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        print(f"PostgreSQL is skipped: {reason}")
    unconnected = machines.why_not_here()
    if unconnected is not None:
        print(f"Machines that lose their network are skipped: {unconnected}")
    end, done = time.monotonic() + 60 * options.minutes, 0
    for run in itertools.cycle(runs(postgres=reason is None, network=unconnected is None)):
        if time.monotonic() > end:
            break
        if run(random.randrange(2**32)):
            return 1
        done += 1
    print(f"{done} runs without a fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
