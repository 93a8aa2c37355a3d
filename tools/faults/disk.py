"""Fill the disk of a store while the server runs, free space again, and verify that no data is lost.

With root rights, the disk is a small file system of its own; otherwise the size of the server's files is limited.

    python -m tools.faults.disk --rounds 10
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tools.faults.ledger import Ledger
from tools.faults.load import load
from tools.faults.probe import Probe
from tools.faults.proof import Subject, prove, tell
from tools.faults.server import Server

_QUICK = 5.0
_SIZE = 32 * 1024 * 1024
_PIECE = 4096


class Disk(Protocol):
    """The folder of the store, and how its disk is filled."""

    name: str
    place: Path

    def fill(self, server: Server | None) -> None:
        """Use up all space."""
        ...

    def make_room(self, server: Server | None) -> None:
        """Free the space again."""
        ...


class SmallDisk:
    """A file system in memory that is filled with a file."""

    name = "a small disk"

    def __init__(self, folder: Path) -> None:
        self._filler = folder / "filler"
        self.place = folder / "store.db"

    def fill(self, server: Server | None) -> None:
        """Write until the file system is full."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (1024 * 1024, _PIECE):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue

    def make_room(self, server: Server | None) -> None:
        """Remove the file."""
        self._filler.unlink()


class ShortFiles:
    """A limit on file sizes that the server cannot exceed."""

    name = "a limit on file sizes"

    def __init__(self, folder: Path) -> None:
        self.place = folder / "store.db"

    def fill(self, server: Server | None) -> None:
        """Limit files to a few pages more than the largest one has."""
        assert server is not None
        longest = max(file.stat().st_size for file in self.place.parent.iterdir())
        _limit(server.pid, longest + _PIECE)

    def make_room(self, server: Server | None) -> None:
        """Remove the limit."""
        assert server is not None
        _limit(server.pid, resource.RLIM_INFINITY)


def _limit(pid: int, size: int) -> None:
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


@contextmanager
def disk_in(folder: Path, *, mounted: bool | None = None) -> Iterator[Disk]:
    """Provide a disk that can run full: a mounted one if possible, unless `mounted` decides."""
    place = folder / "disk"
    place.mkdir()
    if mounted is False or not _mount(place):
        if mounted:
            raise PermissionError("a file system cannot be mounted here")
        if not hasattr(resource, "prlimit"):
            raise PermissionError("the limits of another process cannot be changed here")
        yield ShortFiles(place)
        return
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _mount(place: Path) -> bool:
    if os.geteuid() != 0:
        return False
    options = f"size={_SIZE},mode=700"
    command = ["mount", "-t", "tmpfs", "-o", options, "bespeak-faults", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def fill_again_and_again(
    ledger: Ledger, subject: Subject, disk: Disk, source: random.Random, *, rounds: int, clients: int
) -> None:
    """Run the load, fill the disk, probe, free space, probe; `rounds` times with one server."""
    server = await asyncio.to_thread(subject.serve)
    try:
        async with load(ledger, server.port, clients), Probe(ledger, server.port) as probe:
            for _ in range(rounds):
                await ledger.wait_for(source.randint(50, 300))
                await asyncio.to_thread(disk.fill, server)
                try:
                    # Space that the files have already may still be used; after that it is refused.
                    if not await probe.refused_within(_QUICK):
                        ledger.faults.append("requests were not refused although the disk was full")
                    await probe.expect_service_without_state()
                finally:
                    await asyncio.to_thread(disk.make_room, server)
                await probe.expect_recovery()
                ledger.counts["full"] += 1
                if ledger.faults or not server.alive:
                    break
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code or "Traceback" in server.said():
        ledger.faults.append(f"the server exited with {code}: {server.said()[-2000:]}")


def run(*, rounds: int, clients: int, seed: int, audited: bool = True, mounted: bool | None = None) -> int:
    """Perform one run and print the result; return the exit code."""
    source = random.Random(seed)
    ledger = Ledger(source)
    with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name, disk_in(Path(name), mounted=mounted) as disk:
        subject = Subject.new(Path(name) / "deployment", str(disk.place), audited=audited)

        async def fill_and_prove() -> None:
            await fill_again_and_again(ledger, subject, disk, source, rounds=rounds, clients=clients)
            await prove(ledger, subject)

        asyncio.run(fill_and_prove())
        title = f"SQLite on {disk.name}, {clients} clients, seed {seed}: {ledger.counts['full']} times full"
    return tell(ledger, title)


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="number of times the disk runs full")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    parser.add_argument("--no-audit", dest="audited", action="store_false", help="record no audit trail")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    return run(rounds=options.rounds, clients=options.clients, seed=seed, audited=options.audited)


if __name__ == "__main__":
    sys.exit(main())
