"""Fuzzing of one target with random inputs for a given time. The same seed gives the same inputs."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

Trial = Callable[[random.Random, list[object]], None]
"""Function that makes one input, appends it to the list, and raises if the target breaks its invariant."""


def campaign(description: str | None, trial: Trial) -> int:
    """Read `--seconds` and `--seed`, run the trials and print the result; return the exit code."""
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
