"""`bespeak serve --reload`: serve in a child process, and start it again when a file of the target changes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

import click

from bespeak.app.cli.main import main
from bespeak.app.server.lifecycle import STOP_SIGNALS
from bespeak.app.server.state import names_attribute

_SUFFIXES: Final = (".py", ".toml", ".agis", ".agent", ".yaml", ".yml")
"""Files that make a service. A handler may write others, such as .json, without causing a restart."""
_INTERVAL: Final = 0.4
"""Seconds between two looks at the files."""
_PATIENCE: Final = 5.0
"""Seconds that running requests have to finish before a restart."""

Snapshot = dict[str, tuple[int, int]]


def serve_reloading(target: str, arguments: list[str]) -> int:
    """Run `bespeak` with these arguments until a stop signal; restart it after every change. Return the exit code.

    A child that cannot start has printed why; it is started again after the next change.
    """
    base = _base(target)
    click.echo(f"watching {base}; the server restarts when a file changes", err=True)
    stopping = threading.Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    while True:
        seen = snapshot(base)
        child = _start(arguments)
        changed = _next_change(base, seen, child, stopping)
        _end(child)
        if changed is None:
            return 0
        click.echo(f"reloading: {os.path.relpath(changed, base)} changed", err=True)


def snapshot(base: Path) -> Snapshot:
    """Return modification time and size of every file that can be part of a service."""
    found: Snapshot = {}
    for place in _files(base):
        try:
            state = os.stat(place)  # noqa: PTH116 - a path object for each file costs more than the call
        except OSError:  # removed in the meantime
            continue
        found[place] = (state.st_mtime_ns, state.st_size)
    return found


def _files(base: Path) -> Iterator[str]:
    for folder, inner, names in os.walk(base):
        # Hidden folders, caches and virtual environments belong to tools.
        inner[:] = [
            one
            for one in inner
            if not one.startswith((".", "__pycache__", "node_modules"))
            and not os.path.exists(os.path.join(folder, one, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        ]
        yield from (os.path.join(folder, name) for name in names if name.endswith(_SUFFIXES))  # noqa: PTH118


def _next_change(base: Path, seen: Snapshot, child: SpawnProcess, stopping: threading.Event) -> str | None:
    """Wait for a change and return its file; return None when the server is to stop."""
    alive = True
    while not stopping.is_set():
        if alive and wait([child.sentinel], timeout=_INTERVAL):
            alive = False
            child.join()
            if child.exitcode == 0:
                return None
            click.echo(f"the server ended with code {child.exitcode}; it starts again after a change", err=True)
        elif not alive:
            stopping.wait(_INTERVAL)
        now = snapshot(base)
        changed = sorted(seen.items() ^ now.items())
        if changed:
            return changed[0][0]
    return None


def _start(arguments: list[str]) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(arguments,))
    # The child is told to stop by its parent; Ctrl-C reaches both.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.start()
    signal.signal(signal.SIGINT, interrupt)
    return process


def _run(arguments: list[str]) -> None:
    sys.argv[1:] = arguments
    main()


def _end(child: SpawnProcess) -> None:
    child.terminate()
    child.join(_PATIENCE)
    if child.is_alive():
        child.kill()
        child.join()


def _base(target: str) -> Path:
    """Return the folder whose files make the target."""
    path = Path(target.rpartition(":")[0] if names_attribute(target) else target)
    if path.is_dir():
        return path
    return path.parent if path.is_file() else Path.cwd()
