"""`bespeak serve` in a process of its own, on a port the system chooses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    announcement: str
    """What it said once it was ready."""

    @property
    def uri(self) -> str:
        return self.announcement.split()[1]

    @property
    def port(self) -> int:
        return int(self.uri.rpartition(":")[2])


@contextmanager
def serve(
    target: str, *options: str, folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Serve until the end of the block. What the server says on its error stream is part of a failure's output."""
    command = [sys.executable, "-m", "bespeak", "serve", target, "--agtp", "127.0.0.1:0", *options]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        try:
            assert process.stdout is not None
            announcement = process.stdout.readline()
            assert announcement, f"`bespeak serve {target}` ended with {process.wait()}"
            yield Served(process, announcement)
        finally:
            process.terminate()
