"""A campaign: one target, tried with random inputs until the time is over. The same seed tries the same inputs."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

Trial = Callable[[random.Random, list[object]], None]
"""Makes one input, notes it in the list, and raises when the target does not keep its invariant with it."""


def campaign(description: str | None, trial: Trial) -> int:
    """Read `--seconds` and `--seed`, run, and tell what was found. The exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="repeat a run")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    source = random.Random(seed)
    end, tried = time.monotonic() + options.seconds, 0
    while tried == 0 or time.monotonic() < end:
        noted: list[object] = []
        try:
            trial(source, noted)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            print(f"seed {seed}, trial {tried}: {type(error).__name__}: {error}")
            for value in noted:
                print(ascii(value))
            return 1
        tried += 1
    print(f"seed {seed}: {tried} trials, the invariant holds")
    return 0
