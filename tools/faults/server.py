"""A server that can be killed: `bespeak serve` with all its processes in their own process group."""

from __future__ import annotations

import os
import random
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests import warm

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0


class NotStartedError(Exception):
    """A server that exited before it accepted connections; the text is its error output."""


class Server:
    """A running server that accepts connections."""

    def __init__(self, target: Path, *options: str, host: str = "127.0.0.1", namespace: str | None = None) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._said = ""
        self._gone = False
        self._process = start(
            ["serve", str(target), "--agtp", f"{host}:0", "--strict", *options],
            namespace=namespace,
            stdin=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,  # so that one signal reaches every worker
        )
        line = self._first_line()
        found = re.search(rb"agtp://\S+:(\d+)", line)
        if found is None:
            self.kill()
            raise NotStartedError(self.said())
        self.port = int(found[1])

    @property
    def pid(self) -> int:
        """Process id of the first process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if the first process is running."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return the standard error output so far."""
        if not self._log.closed:
            at = self._log.fileno()
            self._said = os.pread(at, os.fstat(at).st_size, 0).decode("utf-8", "replace")
        return self._said

    def kill(self) -> None:
        """Kill all its processes at once."""
        if self._gone:  # and its number may be that of another one by now
            return
        self._gone = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_PATIENCE)
        assert self._process.stdout is not None
        # Every process of the group holds the other end: it closes when the last of them is gone.
        self._process.stdout.read()
        self._process.stdout.close()
        self.said()
        self._log.close()

    def kill_worker(self, source: random.Random) -> bool:
        """Kill one worker; its parent starts another one. Return False on systems where workers cannot be
        identified.
        """
        return self._tell_worker(source, signal.SIGKILL) is not None

    def pause_worker(self, source: random.Random) -> int | None:
        """Suspend one worker, so that the others consider it dead; return its pid for `go_on`."""
        return self._tell_worker(source, signal.SIGSTOP)

    def go_on(self, worker: int) -> None:
        """Resume a worker."""
        os.kill(worker, signal.SIGCONT)

    def _tell_worker(self, source: random.Random, number: signal.Signals) -> int | None:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        if not children.exists():
            return None
        workers = [pid for pid in map(int, children.read_text().split()) if _is_worker(pid)]
        if not workers:
            return None
        worker = source.choice(workers)
        os.kill(worker, number)
        return worker

    def stop(self) -> int:
        """Stop the server gracefully; return the exit code."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(_PATIENCE)
        self.kill()
        return code

    def _first_line(self) -> bytes:
        """Return the first line of output; empty if the server exits or takes too long."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        line, end = b"", time.monotonic() + _PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in line and selector.select(max(0.0, end - time.monotonic())):
                piece = os.read(descriptor, 4096)
                if not piece:
                    break
                line += piece
        return line


def _is_worker(pid: int) -> bool:
    try:
        return b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return False


def start(arguments: list[str], *, namespace: str | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start a command, perhaps in a network namespace; `options` are those of Popen."""
    options |= {"stdout": subprocess.PIPE, "cwd": ROOT, "env": {**os.environ, "NO_COLOR": "1"}}
    if namespace is None:
        return warm.start(arguments, **options)
    command = ["ip", "netns", "exec", namespace, sys.executable, "-m", "bespeak", *arguments]
    return subprocess.Popen(command, text=True, **options)


def bespeak(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    with start(list(arguments), stderr=subprocess.PIPE) as process:
        try:
            output, errors = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
