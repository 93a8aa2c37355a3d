"""A real `bespeak serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.warm import start

ROOT = Path(__file__).parent.parent
HOTEL = ROOT / "examples" / "hotel"


class Served:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], announcement: str) -> None:
        self.process = process
        self.announcement = announcement
        found = re.search(r"agtp://\S+:(\d+)", announcement)
        assert found, announcement
        self.port = int(found[1])
        self.uri = f"agtp://127.0.0.1:{self.port}"
        self.url = ""  # URL of the HTTP face, for tests that enable it
        self.operations = ""  # URL of health and metrics, for tests that enable them

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def serving(
    target: str | Path = HOTEL,
    *options: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    files: tuple[int, int] | None = None,
    cold: bool = False,
) -> Iterator[Served]:
    """Serve a target on a free port until the block ends; its state is temporary unless a test names a store.

    `files` is the soft and the hard limit of open files. The workers of a `cold` server are interpreters of their own.
    """
    folder = None if "--store" in options else tempfile.TemporaryDirectory(prefix="bespeak-")
    kept = [] if folder is None else ["--store", f"{folder.name}/bespeak.db"]
    arguments = ["serve", str(target), "--agtp", "127.0.0.1:0", *kept, *options]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": cwd}
    if files is None and not cold:
        process = start(arguments, env={**os.environ, **(env or {})}, **streams)
    else:
        limits = f"ulimit -Sn {files[0]}; ulimit -Hn {files[1]}; " if files else ""
        command = ["sh", "-c", f'{limits}exec "$@"', "sh", sys.executable, "-m", "bespeak", *arguments]
        process = subprocess.Popen(command, text=True, env={**os.environ, **(env or {})}, **streams)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            assert process.stderr is not None
            raise AssertionError(f"the server did not start: {process.stderr.read()}")
        served = Served(process, line)
        if "--http" in options:
            line = process.stdout.readline()
            served.announcement += line
            served.url = line.split()[1]
        if "--operations" in options:
            line = process.stdout.readline()
            served.announcement += line
            served.operations = line.split()[1]
        yield served
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        if folder is not None:
            folder.cleanup()


def bespeak(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    process = start(
        list(arguments),
        stdin=None if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
    )
    try:
        output, errors = process.communicate(given, timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def refused(*arguments: str, code: int = 2, **options: Any) -> str:
    """Run a command that must fail with one message, and return that."""
    done = bespeak(*arguments, **options)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    return done.stderr
