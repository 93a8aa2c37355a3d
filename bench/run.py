"""Measure bespeak: throughput compared with peers, many endpoints, memory, lint. Only ratios within one run are
meaningful.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import composition
import endpoints
import importing
import lint
import mcp_calls
import mcp_tokens
import memory
import planning
import throughput
import web
from load import find_loader

import state

PARTS = (
    "throughput",
    "web",
    "mcp",
    "tokens",
    "state",
    "composition",
    "endpoints",
    "memory",
    "lint",
    "import",
    "planning",
)


def main() -> int:
    """Run the selected parts and print their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="run only this part (repeatable)")
    parser.add_argument("--rounds", type=int, default=3, help="number of interleaved rounds per comparison (default 3)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round (default 3)")
    parser.add_argument("--connections", type=int, default=32, help="keep-alive connections (default 32)")
    parser.add_argument("--pipeline", type=int, default=1, help="requests in flight on each connection (default 1)")
    parser.add_argument(
        "--quick", action="store_true", help="one round of one second, fewer requests in the memory part"
    )
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="folder in which npm installed the other linters")
    options = parser.parse_args()
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, options.seconds)

    loader = find_loader()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pinned = "server on one core, loader on another" if cores and cores > 1 else "one core for everything"
    print(f"Python {platform.python_version()}, {cores} cores ({pinned}); load by {loader.description}")
    good = True
    for part in options.only or PARTS:
        if part == "throughput":
            print(
                f"\nBOOK /room, one worker, {options.connections} connections, {options.pipeline} in flight on each, "
                f"{rounds} x {seconds:g} s, medians"
            )
            good &= throughput.measure(loader, throughput.Shape(rounds, seconds, options.connections, options.pipeline))
        elif part == "web":
            print(f"\nThe HTTP face, one worker, {options.connections} connections, {rounds} x {seconds:g} s, medians")
            good &= web.measure(loader, throughput.Shape(rounds, seconds, options.connections, 1))
        elif part == "mcp":
            print(f"\nMCP over HTTP, {options.connections} connections, {rounds} x {seconds:g} s, medians")
            good &= mcp_calls.measure(loader, throughput.Shape(rounds, seconds, options.connections, 1))
        elif part == "tokens":
            print("\nTokens of MCP catalogs, by the tokenizer of GPT-3")
            good &= mcp_tokens.measure()
        elif part == "state":
            print(f"\nBOOK /room, every request with its own key and audit record, {rounds} x {seconds:g} s, medians")
            good &= state.measure(loader, rounds=rounds, seconds=seconds)
        elif part == "composition":
            print(f"\nCompositions, one worker, {rounds} x {seconds:g} s, medians")
            good &= composition.measure(loader, rounds=rounds, seconds=seconds)
        elif part == "endpoints":
            print("\n10,000 endpoints")
            good &= endpoints.measure(loader, rounds=rounds, seconds=seconds)
        elif part == "lint":
            print(f"\nbespeak lint with every rule, one core, medians of {rounds}; rates by processor time")
            good &= lint.measure(rounds=rounds, installed=options.peers)
        elif part == "import":
            print("\nbespeak import openapi, wall time of the whole process")
            good &= importing.measure()
        elif part == "planning":
            print(f"\nPlans for proposed endpoints, best of {planning.REPEATS} for each")
            good &= planning.measure()
        else:
            print("\nMemory of the example hotel")
            good &= memory.measure(loader, requests=10_000 if options.quick else 100_000)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
