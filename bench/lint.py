"""Lines and files per second of `bespeak lint` with all rules, and its start-up time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from report import Goal, table

import documents
from process import on_core

LINES: Final = 50_000
FILES: Final = 1_000
STARTS: Final = 7
"""Number of runs on one small file; their median is the start-up time."""

LINE_GOAL: Final = Goal("lines", at_least=50, unit=" k")
FILE_GOAL: Final = Goal("files", at_least=1_000, unit="")
START_GOAL: Final = Goal("start", at_most=0.25, unit=" s")


@dataclass(frozen=True, slots=True)
class Run:
    """Cost of one run of a linter. Node programs use several threads; processor time counts them all."""

    cpu: float
    wall: float
    peak_mb: float
    code: int


@dataclass(frozen=True, slots=True)
class Linter:
    """A linter that is installed here, and the documents it checks."""

    name: str
    command: Callable[[Path], list[str]]
    """Command that checks every file in a folder."""
    suffix: str
    document: Callable[[int, int], str]
    """Function that returns a document, given the number of its first operation and the number of operations."""
    mistake: tuple[str, str]
    """Replacement, as old and new text, that turns a document into one that every such linter refuses."""


@dataclass(frozen=True, slots=True)
class Row:
    """Medians of a linter on one input."""

    linter: str
    files: int
    lines: int
    run: Run

    def cells(self, bespeak: Row | None) -> list[str]:
        """Return the row of the table, with the ratio to bespeak in processor time per line."""
        run = self.run
        ratio = (run.cpu / self.lines) / (bespeak.run.cpu / bespeak.lines) if bespeak else 0.0
        return [
            self.linter,
            f"{self.files:,}",
            f"{self.lines:,}",
            f"{run.cpu:.2f}",
            f"{run.wall:.2f}",
            f"{self.lines / run.cpu:,.0f}",
            f"{self.files / run.cpu:,.0f}",
            f"{run.peak_mb:.0f}",
            f"{ratio:.1f}x" if bespeak else "-",
        ]


def bespeak() -> Linter:
    """Return `bespeak lint` of this Python, for AGIS documents."""
    return Linter("bespeak", _bespeak_command, ".agis", documents.agis_document, ("method: BOOK", "method: BOOKING"))


def _bespeak_command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "bespeak", "lint", "--no-config", "--quiet", str(folder)]


def peers(installed: Path | None, ruleset: Path) -> list[Linter]:
    """Return the installed OpenAPI linters with their recommended rules; print which are missing."""
    programs = {
        "redocly": ("@redocly/cli", ["--extends=recommended"]),
        "spectral": ("@stoplight/spectral-cli", ["-r", str(ruleset)]),
    }
    found = []
    for name, (package, options) in programs.items():
        program = _program(name, installed)
        if program is None or shutil.which("node") is None:
            print(f"  {name} is skipped: it needs node and `npm install {package}` in a folder given as --peers")
            continue
        command = partial(_peer_command, [program, "lint", *options])
        found.append(Linter(name, command, ".yaml", documents.openapi_document, ("operationId:", "operationIdd:")))
    return found


def _peer_command(program: list[str], folder: Path) -> list[str]:
    return [*program, *map(str, sorted(folder.iterdir()))]


def _program(name: str, installed: Path | None) -> str | None:
    folder = str(installed / "node_modules" / ".bin") if installed else None
    return shutil.which(name, path=folder)


def run_once(command: list[str], cache: Path) -> Run:
    """Run a command on one core and return its cost."""
    # As an installation is: with its bytecode. The environment of a developer may forbid to write any.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    with on_core(0):
        start = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / unit, process.returncode)


def middle(runs: list[Run]) -> Run:
    """Return the medians of several runs, and the worst exit code."""
    return Run(
        median(run.cpu for run in runs),
        median(run.wall for run in runs),
        median(run.peak_mb for run in runs),
        max(run.code for run in runs),
    )


def check(linter: Linter, folder: Path, cache: Path) -> None:
    """Raise if a linter accepts an invalid document or refuses a valid one; measuring it would be pointless."""
    good = linter.document(0, 1)
    for name, text, expected in (("good", good, 0), ("wrong", good.replace(*linter.mistake), 1)):
        place = folder / f"{linter.name}-{name}"
        documents.write_files(place, linter.suffix, [text])
        code = run_once(linter.command(place), cache).code
        if code != expected:
            raise RuntimeError(f"{linter.name} exits with {code} on a {name} document, expected {expected}")


def measure(*, rounds: int, installed: Path | None = None, lines: int = LINES, files: int = FILES) -> bool:
    """Print the cost of each linter for one large document, many small ones and a single one; return True if none
    had findings.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "bytecode"
        ruleset = folder / "spectral.yaml"
        ruleset.write_text("extends: spectral:oas\n")
        linters = [bespeak(), *peers(installed, ruleset)]
        for linter in linters:
            check(linter, folder, cache)
        count = documents.operations_in(lines)
        rows = _compete(linters, folder / "large", lambda linter: [linter.document(0, count)], rounds, cache)
        large = rows[0]
        _print("One large document", rows)
        many = _compete(
            linters, folder / "many", lambda linter: [linter.document(at, 1) for at in range(files)], rounds, cache
        )
        _print(f"{files:,} small documents", many)
        toml = _compete(
            [bespeak()],
            folder / "toml",
            lambda _: [documents.endpoint_file(number) for number in range(files)],
            rounds,
            cache,
            suffix=".toml",
        )
        _print(f"{files:,} endpoint files", toml)
        one = _compete(linters, folder / "one", lambda linter: [linter.document(0, 1)], STARTS, cache)
        _print("One small document: the start", one)
    print()
    print("  " + LINE_GOAL.line("thousand lines/s, one document", large.lines / large.run.cpu / 1000))
    print("  " + FILE_GOAL.line("endpoint files/s", toml[0].files / toml[0].run.cpu))
    print("  " + START_GOAL.line("start, processor time", one[0].run.cpu) + f"   (wall {one[0].run.wall:.2f} s)")
    return not any(row.run.code for row in (*rows, *many, *toml, *one))


def _compete(
    linters: list[Linter],
    folder: Path,
    texts: Callable[[Linter], list[str]],
    rounds: int,
    cache: Path,
    *,
    suffix: str | None = None,
) -> list[Row]:
    """Run interleaved rounds of all linters on the same input."""
    folder.mkdir()
    jobs = []
    for linter in linters:
        written = texts(linter)
        place = folder / linter.name
        jobs.append((linter, place, len(written), documents.write_files(place, suffix or linter.suffix, written)))
    runs: dict[str, list[Run]] = {linter.name: [] for linter in linters}
    for _ in range(rounds):
        for linter, place, _, _ in jobs:
            runs[linter.name].append(run_once(linter.command(place), cache))
    return [Row(linter.name, files, lines, middle(runs[linter.name])) for linter, _, files, lines in jobs]


def _print(title: str, rows: list[Row]) -> None:
    heading = ["linter", "files", "lines", "CPU s", "wall s", "lines/CPU s", "files/CPU s", "peak MB", "CPU per line"]
    print(f"\n  {title}")
    print(table([heading, *(row.cells(rows[0] if at else None) for at, row in enumerate(rows))]))
