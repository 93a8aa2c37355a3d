"""Measure bespeak: throughput compared with peers, many endpoints, memory, lint. Only ratios within one run are
meaningful.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alerts
import alignment
import composition
import endpoints
import fairness
import importing
import lint
import matching
import mcp_calls
import mcp_tokens
import memory
import ontologies
import planning
import semantic
import throughput
import web
import workflows
from load import Loader, find_loader

import pages
import state


@dataclass(frozen=True, slots=True)
class Run:
    """How much is measured."""

    loader: Loader
    rounds: int
    seconds: float
    connections: int
    depth: int
    quick: bool
    peers: Path | None

    def shape(self, depth: int = 1) -> throughput.Shape:
        """Return the amount and duration of the load."""
        return throughput.Shape(self.rounds, self.seconds, self.connections, depth)

    @property
    def timed(self) -> dict[str, Any]:
        """Number and length of the rounds."""
        return {"rounds": self.rounds, "seconds": self.seconds}


Part = tuple[str, Callable[[Run], bool]]
_ROUNDS = "{rounds} x {seconds:g} s, medians"
PARTS: dict[str, Part] = {
    "throughput": (
        f"BOOK /room, one worker, {{connections}} connections, {{depth}} in flight on each, {_ROUNDS}",
        lambda run: throughput.measure(run.loader, run.shape(run.depth)),
    ),
    "web": (
        f"The HTTP face, one worker, {{connections}} connections, {_ROUNDS}",
        lambda run: web.measure(run.loader, run.shape()),
    ),
    "pages": (
        "Pages for people in Chromium, medians; one page that watches",
        lambda run: pages.measure(run.loader, run.peers),
    ),
    "mcp": (
        f"MCP over HTTP, {{connections}} connections, {_ROUNDS}",
        lambda run: mcp_calls.measure(run.loader, run.shape()),
    ),
    "tokens": ("Tokens of MCP catalogs, by the tokenizer of GPT-3", lambda _: mcp_tokens.measure()),
    "state": (
        f"BOOK /room, every request with its own key and audit record, {_ROUNDS}",
        lambda run: state.measure(run.loader, **run.timed),
    ),
    "workflows": (
        f"Workflows of three steps, one worker, {_ROUNDS}",
        lambda run: workflows.measure(run.loader, **run.timed),
    ),
    "fairness": (
        "A call of one agent beside 16 busy connections of another, one worker",
        lambda run: fairness.measure(seconds=run.seconds),
    ),
    "alerts": ("Alerts that all escalate at one moment", lambda _: alerts.measure()),
    "composition": (
        f"Compositions, one worker, {_ROUNDS}",
        lambda run: composition.measure(run.loader, **run.timed),
    ),
    "endpoints": ("10,000 endpoints", lambda run: endpoints.measure(run.loader, **run.timed)),
    "memory": (
        "Memory of the example hotel",
        lambda run: memory.measure(run.loader, requests=10_000 if run.quick else 100_000),
    ),
    "lint": (
        "bespeak lint with every rule, one core, medians of {rounds}; rates by processor time",
        lambda run: lint.measure(rounds=run.rounds, installed=run.peers),
    ),
    "import": ("bespeak import openapi, wall time of the whole process", lambda _: importing.measure()),
    "matching": ("Needs matched with endpoints, processor time", lambda _: matching.measure()),
    "planning": (
        f"Plans for proposed endpoints, best of {planning.REPEATS} for each",
        lambda _: planning.measure(),
    ),
    "ontologies": ("Ontologies of 35,000 triples, processor time", lambda _: ontologies.measure()),
    "alignment": ("Alignment of two ontologies of 3,000 classes", lambda _: alignment.measure()),
    "semantic": ("Semantic envelopes, processor time", lambda _: semantic.measure()),
}
"""Title of each part, and the function that measures it; False means that a server answered wrongly."""


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
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="folder in which npm installed the others")
    options = parser.parse_args()
    rounds, seconds = (1, 1.0) if options.quick else (options.rounds, options.seconds)
    loader = find_loader()
    run = Run(loader, rounds, seconds, options.connections, options.pipeline, options.quick, options.peers)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pinned = "server on one core, loader on another" if cores and cores > 1 else "one core for everything"
    print(f"Python {platform.python_version()}, {cores} cores ({pinned}); load by {loader.description}")
    good = True
    for part in options.only or PARTS:
        title, measure = PARTS[part]
        print("\n" + title.format(rounds=rounds, seconds=seconds, connections=run.connections, depth=run.depth))
        good &= measure(run)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
