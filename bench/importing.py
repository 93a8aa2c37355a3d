"""Time and memory of a complete `bespeak import openapi`, for descriptions as large as the largest public ones."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from large_description import OPERATIONS, SCHEMAS, description
from report import Goal, table

TIME = Goal("time", at_most=20, unit=" s")
MEMORY = Goal("memory", at_most=1_000, unit=" MB")
TIME_LIMIT = 300.0
# The child tells its own peak: that of all children together would be the largest one's.
CHILD = (
    "import resource, sys\n"
    "from bespeak.app.cli.main import main\n"
    "try:\n"
    "    code = main()\n"
    "except SystemExit as ended:\n"
    "    code = ended.code\n"
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    "sys.exit(code)\n"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A description to import."""

    name: str
    text: str
    suffix: str


def measure() -> bool:
    """Print wall time and peak memory of each import; return True if every operation became an endpoint."""
    rows = [["description", "MB", "operations", "seconds", "peak MB"]]
    verdicts, good = [], True
    for subject, operations in _subjects():
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"description.{subject.suffix}"
            source.write_text(subject.text, encoding="utf-8")
            target = Path(folder) / "out"
            command = [sys.executable, "-c", CHILD, "import", "openapi", str(source), "-o", str(target)]
            started = time.perf_counter()
            ended = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
            seconds = time.perf_counter() - started
            complete = ended.returncode == 0 and len(list((target / "endpoints").glob("*.toml"))) == operations
        if not complete:
            print(f"  {subject.name} was not imported: {ended.stderr.strip()[-300:]}")
            good = False
            continue
        peak = int(ended.stderr.split()[-1]) / 1024
        size = len(subject.text) / 1e6
        rows.append([subject.name, f"{size:.1f}", f"{operations:,}", f"{seconds:.1f}", f"{peak:.0f}"])
        verdicts.append("  " + TIME.line(f"time: {subject.name}", seconds))
        verdicts.append("  " + MEMORY.line(f"memory: {subject.name}", peak))
    print(table(rows))
    print()
    print("\n".join(verdicts))
    return good


def _subjects() -> list[tuple[Subject, int]]:
    usual = description(OPERATIONS, SCHEMAS)
    dense = description(OPERATIONS, SCHEMAS, dense=True)
    return [
        (Subject("JSON", json.dumps(usual), "json"), OPERATIONS),
        (Subject("YAML", yaml.dump(usual, Dumper=_DUMPER), "yaml"), OPERATIONS),
        (Subject("JSON, every schema reaches every other", json.dumps(dense), "json"), OPERATIONS),
        (Subject("10,000 small operations", json.dumps(_many(10_000)), "json"), 10_000),
    ]


_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _many(operations: int) -> dict[str, Any]:
    """Return a description of many minimal operations."""
    good = {"200": {"description": "Good", "content": {"application/json": {"schema": {"type": "object"}}}}}
    paths = {
        f"/things-{number}": {"get": {"operationId": f"getThing{number}", "responses": good}}
        for number in range(operations)
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Many", "version": "1"},
        "servers": [{"url": "https://many.example"}],
        "paths": paths,
    }
