"""Stop PostgreSQL under a running server and verify that the server reports it, recovers and loses no data.

python -m tools.faults.outage --rounds 10 --workers 2
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.postgres import PostgresServer, why_not
from tools.faults.ledger import Ledger
from tools.faults.load import load
from tools.faults.probe import Probe
from tools.faults.proof import Subject, prove, tell

_QUICK = 5.0
"""Seconds within which a server must report that its database is unreachable."""
_FROZEN = 15.0
"""The same limit for a database that keeps its connections but does not answer, which takes longer to detect."""


@dataclass(frozen=True)
class Harm:
    """One kind of database outage, with its recovery."""

    name: str
    within: float
    """Seconds within which requests are refused."""
    take_away: Callable[[], None]
    give_back: Callable[[], None]


def harms_to(database: PostgresServer) -> list[Harm]:
    """Return the outages to cause, one after the other."""
    frozen: list[int] = []

    def freeze() -> None:
        # Its processes are in groups of their own, so each is told; the first one first, so that no more are made.
        first = database.pid
        os.kill(first, signal.SIGSTOP)
        frozen[:] = [first, *_children(first)]
        for pid in frozen[1:]:
            _tell(pid, signal.SIGSTOP)

    def thaw() -> None:
        for pid in reversed(frozen):
            _tell(pid, signal.SIGCONT)

    found = [
        Harm("crashes", _QUICK, database.stop, database.start),
        Harm("orderly stops", _QUICK, lambda: database.stop("INT"), database.start),
    ]
    if Path("/proc/self/task").exists():
        found.append(Harm("freezes", _FROZEN, freeze, thaw))
    return found


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def _tell(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has ended by itself
        return


async def harm_again_and_again(
    ledger: Ledger, subject: Subject, harms: list[Harm], source: random.Random, *, rounds: int, clients: int
) -> None:
    """Run the load, stop the database, probe, start it, probe; `rounds` times with one server."""
    server = await asyncio.to_thread(subject.serve)
    try:
        async with load(ledger, server.port, clients), Probe(ledger, server.port) as probe:
            for number in range(rounds):
                harm = harms[number % len(harms)]
                await ledger.wait_for(source.randint(50, 300))
                await asyncio.to_thread(harm.take_away)
                try:
                    await probe.expect_refusals(harm.within)
                finally:
                    await asyncio.to_thread(harm.give_back)
                await probe.expect_recovery()
                ledger.counts[harm.name] += 1
                if ledger.faults or not server.alive:
                    break
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code or "Traceback" in server.said():
        ledger.faults.append(f"the server exited with {code}: {server.said()[-2000:]}")


def run(*, rounds: int, clients: int, workers: int, seed: int, audited: bool = True, only: str | None = None) -> int:
    """Perform one run and print the result; return the exit code."""
    source = random.Random(seed)
    ledger = Ledger(source)
    database = PostgresServer()
    harms = [harm for harm in harms_to(database) if only in (None, harm.name)]
    try:
        with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name:
            subject = Subject.new(Path(name) / "deployment", database.new_database(), workers, audited=audited)

            async def harm_and_prove() -> None:
                await harm_again_and_again(ledger, subject, harms, source, rounds=rounds, clients=clients)
                await prove(ledger, subject)

            asyncio.run(harm_and_prove())
    finally:
        database.remove()
    done = ", ".join(f"{ledger.counts[harm.name]} {harm.name}" for harm in harms)
    return tell(ledger, f"PostgreSQL outages, {workers} worker(s), {clients} clients, seed {seed}: {done}")


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="number of outages")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=[1, 2], default=1)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    parser.add_argument("--no-audit", dest="audited", action="store_false", help="record no audit trail")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if options.seed is None else options.seed
    return run(
        rounds=options.rounds, clients=options.clients, workers=options.workers, seed=seed, audited=options.audited
    )


if __name__ == "__main__":
    sys.exit(main())
