"""Compositions compared with the endpoints that they call: processor time of the server per call."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from load import Loader
from report import Goal, table

import contract
from process import ServerProcess, free_port, running

APP = Path(__file__).resolve().parent / "servers" / "composition_app.py"

PASSING = Goal("passthrough", at_most=1.25)
THREE = Goal("three steps", at_most=1.20)

FIND = contract.agtp_request({"city": "Riga", "beds": 2}, "FIND", "/rooms")
PASS_ON = contract.agtp_request({"city": "Riga", "beds": 2}, "QUERY", "/rooms")
STEPS = (
    contract.agtp_request({"city": "Riga"}, "FIND", "/rooms"),
    contract.agtp_request({}, "FETCH", "/rooms/0"),
    contract.agtp_request({"room_id": "0", "guest": "Ann"}, "BOOK", "/room"),
)
STAY = contract.agtp_request({"city": "Riga", "guest": "Ann"}, "BOOK", "/stay")


def measure(loader: Loader, *, rounds: int, seconds: float) -> bool:
    """Print the cost of compositions compared with that of their steps; return True if every reply was a 200."""
    kinds = {
        "an endpoint": (FIND, 1),
        "a composition that passes it on": (PASS_ON, 1),
        "three endpoints": (b"".join(STEPS), 3),
        "a composition of the three": (STAY, 1),
    }
    port, costs, errors = free_port(), {name: list[float]() for name in kinds}, 0
    with running(
        ["-m", "bespeak", "serve", f"{APP}:app", "--agtp", f"127.0.0.1:{port}", "--store", "memory"], port
    ) as server:
        for request in (FIND, PASS_ON, *STEPS, STAY):
            reply = server.exchange(request)
            if b" 200 " not in reply[:20]:
                raise RuntimeError(f"the server did not answer: {reply[:600]!r}")
        for turn in range(rounds + 1):
            for name, (requests, calls) in kinds.items():
                cost, failed = _run(loader, server, requests, seconds=seconds if turn else 0.5)
                errors += failed
                costs[name] += [cost * calls] if turn else []
    print(table([("", "CPU µs"), *((name, f"{median(cost):.1f}") for name, cost in costs.items())]))
    one, passed, three, composed = costs.values()
    print()
    print("  " + PASSING.line("passthrough, against the endpoint itself", _ratio(passed, one)))
    print("  " + THREE.line("three steps, against three calls", _ratio(composed, three)))
    return not errors


def _run(loader: Loader, server: ServerProcess, requests: bytes, *, seconds: float) -> tuple[float, int]:
    before = server.cpu_seconds()
    load = loader.run(server.port, requests, seconds=seconds)
    return (server.cpu_seconds() - before) / load.requests * 1e6, load.errors


def _ratio(costs: list[float], others: list[float]) -> float:
    """Return the median of the ratios within each round, so that a slow minute of the machine affects both sides."""
    return median(cost / other for cost, other in zip(costs, others, strict=True))
