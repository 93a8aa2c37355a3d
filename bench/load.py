"""The load generator: compiled from loader.c if possible, else loader.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from process import on_core

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Load:
    """Results of one run of the load generator."""

    requests: int
    errors: int
    rps: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Loader:
    """A load generator, ready to run."""

    command: tuple[str, ...]
    description: str

    def run(
        self,
        port: int,
        requests: bytes,
        *,
        seconds: float,
        connections: int = 32,
        depth: int = 1,
        limit: int | None = None,
    ) -> Load:
        """Send these requests to the server continuously and return the results."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(requests)
            file.flush()
            arguments = [str(port), file.name, str(connections), str(depth), str(seconds)]
            if limit is not None:
                arguments.append(str(limit))
            with on_core(1):
                done = subprocess.run(
                    [*self.command, *arguments], stdout=subprocess.PIPE, timeout=seconds + 60, check=True
                )
        result = json.loads(done.stdout)
        return Load(result["requests"], result["errors"], result["rps"], result["p50_us"], result["p99_us"])


def find_loader() -> Loader:
    """Return the C load generator, compiled if its source is newer; without a compiler, return the Python one."""
    fallback = (sys.executable, str(HERE / "loader.py"))
    if not sys.platform.startswith("linux"):
        return Loader(fallback, "loader.py (the C loader needs epoll, Linux); fast servers look slower than they are")
    source, program = HERE / "loader.c", HERE / "loader"
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return Loader((str(program),), "loader.c")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return Loader(
            fallback,
            "loader.py (no C compiler found; install gcc or clang); fast servers look slower than they are",
        )
    subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True, timeout=120)
    return Loader((str(program),), "loader.c")
