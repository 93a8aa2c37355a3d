"""Kill a server under load repeatedly and verify that it keeps every acknowledged change.

python -m tools.faults.kill --store sqlite --rounds 20 --clients 32
python -m tools.faults.kill --store postgres --workers 2 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import PostgresServer, why_not
from tools.faults.deployment import LEASE
from tools.faults.ledger import Ledger
from tools.faults.load import load
from tools.faults.proof import Subject, prove, tell
from tools.faults.server import Server

_FEWEST, _MOST = 20, 400
"""Minimum and maximum of requests between a start and a kill."""


async def kill_again_and_again(
    ledger: Ledger, subject: Subject, source: random.Random, rounds: int, clients: int, *, most: int = _MOST
) -> None:
    """Start, load, kill; `rounds` times. With several workers, alternately pause or kill one of them first.

    `most` is the maximum of requests before each.
    """
    for number in range(rounds):
        if ledger.faults:
            return
        server = await asyncio.to_thread(subject.serve)
        try:
            async with load(ledger, server.port, clients):
                if subject.workers > 1:
                    await _moment(ledger, source, most)
                    await (_kill_one if number % 2 else _pause_one)(ledger, server, source)
                await _moment(ledger, source, most)
                if not server.alive:
                    ledger.faults.append(f"the server exited by itself: {server.said()[-600:]}")
                if number % 4 == 3:
                    await _end_in_order(ledger, server)
                else:
                    server.kill()
                    ledger.counts["kills"] += 1
        finally:
            server.kill()
        if "Traceback" in server.said():
            ledger.faults.append(f"the server wrote a stack trace: {server.said()[-2000:]}")


async def _end_in_order(ledger: Ledger, server: Server) -> None:
    """Stop the server as an operator does: running requests are answered first."""
    code = await asyncio.to_thread(server.stop)
    ledger.counts["orderly ends"] += 1
    if code:
        ledger.faults.append(f"the server exited with {code}: {server.said()[-600:]}")


async def _kill_one(ledger: Ledger, server: Server, source: random.Random) -> None:
    ledger.counts["workers killed"] += server.kill_worker(source)


async def _pause_one(ledger: Ledger, server: Server, source: random.Random) -> None:
    """Pause a worker for longer than the lease: another one takes over its work, then the paused one continues."""
    worker = server.pause_worker(source)
    if worker is not None:
        await asyncio.sleep(1.5 * LEASE)
        server.go_on(worker)
        ledger.counts["workers paused"] += 1


async def _moment(ledger: Ledger, source: random.Random, most: int) -> None:
    """Wait for a random moment under load: after some requests, at any point of their processing."""
    await ledger.wait_for(source.randint(_FEWEST, most))
    await asyncio.sleep(source.random() * 0.02)


@contextmanager
def place_for(store: str, folder: Path) -> Iterator[str]:
    """Provide a new store: a file, or a database on a server started for it."""
    if store == "sqlite":
        yield str(folder / "store.db")
        return
    server = PostgresServer()
    try:
        yield server.new_database()
    finally:
        server.remove()


def run(
    store: str, *, rounds: int, clients: int, workers: int, seed: int, audited: bool = True, most: int = _MOST
) -> int:
    """Perform one run and print the result; return the exit code. `most` is the maximum of requests before a kill."""
    source = random.Random(seed)
    ledger = Ledger(source)
    with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name, place_for(store, Path(name)) as place:
        subject = Subject.new(Path(name) / "deployment", place, workers, audited=audited)

        async def kill_and_prove() -> None:
            await kill_again_and_again(ledger, subject, source, rounds, clients, most=most)
            await prove(ledger, subject)

        asyncio.run(kill_and_prove())
    counts = ledger.counts
    done = f"{counts['kills']} kills and {counts['orderly ends']} graceful stops of the server"
    if workers > 1:
        done += f", {counts['workers killed']} kills and {counts['workers paused']} pauses of single workers"
    return tell(ledger, f"{store}, {workers} worker(s), {clients} clients, seed {seed}: {done}")


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rounds", type=int, default=10, help="number of kills")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=[1, 2], default=1)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    parser.add_argument("--no-audit", dest="audited", action="store_false", help="record no audit trail")
    options = parser.parse_args()
    reason = why_not() if options.store == "postgres" else None
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if options.seed is None else options.seed
    return run(
        options.store,
        rounds=options.rounds,
        clients=options.clients,
        workers=options.workers,
        seed=seed,
        audited=options.audited,
    )


if __name__ == "__main__":
    sys.exit(main())
