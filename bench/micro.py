"""Microseconds of each step of the hot path, without sockets.

`--profile` runs the whole path under cProfile and prints the most expensive functions. The profiler adds a cost to
every call, which exaggerates small functions: use it to find a hot spot, and the table to judge a change.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from report import table

import contract
from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.translation import RequestReader, to_bytes
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.gates import ARRIVAL, ROUTED, find_route

APP = Path(__file__).resolve().parent / "servers" / "bespeak_app.py"


def microseconds(step: Callable[[], object], repeats: int) -> float:
    """Return the time of one step: the best of nine loops, because slower ones only show noise of the machine."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        times.append((time.perf_counter() - start) / repeats)
    return min(times) * 1e6


class Steps:
    """One request, split into the steps of the layers."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._connection = Connection(peer="127.0.0.1")
        self._connection.answered = 1
        self._wire = RequestReader(connection=self._connection)
        self._bytes = contract.agtp_request(contract.GOOD)
        self._numbers = iter(range(10**12))
        self.request = self.accept()

    def read(self, data: bytes | None = None) -> Request:
        """Read a message from bytes."""
        self._wire.receive_data(data or self._bytes)
        event = self._wire.next_event()
        assert isinstance(event, Request), event
        return event

    def read_new_head(self) -> Request:
        """Read a message whose head is not cached."""
        return self.read(contract.with_task_id(self._bytes, next(self._numbers)))

    def accept(self) -> Request:
        """Read the runtime's Request from bytes."""
        return self.read()

    def call(self) -> Call:
        """Make an empty call."""
        return Call(self.request, self._dispatcher.server)

    def routed(self) -> RoutedCall:
        """Make a call with its endpoint resolved."""
        call = self.call()
        for gate in ARRIVAL:
            refused = gate(call)
            assert refused is None, refused
        route = call.routes.direct[call.path][call.method]
        return RoutedCall(call, route)

    def gated(self) -> RoutedCall:
        """Make a call that has passed every gate."""
        call = self.routed()
        for gate in ROUTED:
            refused = gate(call)
            assert refused is None, refused
        return call

    def dispatch(self) -> Response:
        """Run gates, handler and output check."""
        response: Response = drive(self._dispatcher(self.request))
        return response

    def write(self, response: Response) -> bytes:
        """Write a response to bytes."""
        return to_bytes(response)

    def whole(self) -> bytes:
        """Run everything between the two system calls."""
        return self.write(drive(self._dispatcher(self.accept())))


def drive(result: Any) -> Any:
    """Return the result of a coroutine that never waits."""
    if not hasattr(result, "send"):
        return result
    try:
        result.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the handler waits")


def report(steps: Steps, repeats: int) -> None:
    """Print the table."""
    rows = [["step", "µs"]]

    def line(name: str, step: Callable[[], object], without: float = 0.0) -> float:
        spent = microseconds(step, repeats)
        rows.append([name, f"{spent - without:.2f}"])
        return spent

    line("read: bytes to message, head seen before", steps.read)
    line("read: bytes to message, head new", steps.read_new_head)
    made = line("a Call", steps.call)
    passed = steps.gated()
    for gate in ARRIVAL:
        line(f"gate: {gate.__name__}", partial(gate, passed))
    line("route: a literal path", lambda: RoutedCall(passed, passed.routes.direct[passed.path][passed.method]))
    line("route: the gates for any other path", lambda: find_route(passed))
    for judge in ROUTED:
        line(f"gate: {judge.__name__}", partial(judge, passed))
    gated = line("all gates with the Call", steps.gated)
    dispatched = line("dispatch: gates, handler, output, headers", steps.dispatch)
    rows.append(["  of it handler, output, headers", f"{dispatched - gated:.2f}"])
    output = {"reservation_id": contract.next_reservation_id()}
    line("  of it the output schema", lambda: passed.route.output.is_valid(output))
    response = steps.dispatch()
    line("write: response to bytes", lambda: steps.write(response))
    line("whole: bytes in, bytes out", steps.whole)
    print(table(rows))
    print(f"  (a Call alone {made:.2f} µs; each gate is timed on a call that has passed all of them)")


def profile(steps: Steps, repeats: int) -> None:
    """Print the most expensive functions of the whole path."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(repeats):
        steps.whole()
    profiler.disable()
    pstats.Stats(profiler, stream=sys.stdout).strip_dirs().sort_stats("tottime").print_stats(25)


def main() -> int:
    """Measure the steps, or profile them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--profile", action="store_true", help="cProfile of the whole path instead of the table")
    parser.add_argument("--repeats", type=int, default=20_000, help="requests in a loop (default 20,000)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    steps = Steps(assemble(load_target(f"{APP}:app").service).build_dispatcher())
    if options.profile:
        profile(steps, options.repeats)
    else:
        report(steps, options.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
