"""Warm starts of `bespeak` and of scripts: processes that need not import it, because `tests.forker` forks them.

Whatever depends on a cold start runs `python -m bespeak`, as in `tests/app/cli/test_main.py`.
"""

from __future__ import annotations

import atexit
import inspect
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests import forker

ROOT = Path(__file__).parents[1]

_execute_child = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined] # not public


def start(arguments: list[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    """Start `bespeak`: warm, unless its environment acts on the start of a process. `options` are those of Popen."""
    return start_python(["-m", "bespeak", *arguments], env=env, **options)


def start_python(arguments: list[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    """Start `python -m MODULE`, `python -c CODE` or `python SCRIPT` in the same way."""
    if hasattr(os, "fork") and forker.acts_at_start(env) == forker.acts_at_start(os.environ):
        return WarmProcess(arguments, env=env, text=True, **options)
    return subprocess.Popen([sys.executable, *arguments], env=env, text=True, **options)


class WarmProcess(subprocess.Popen[str]):
    """A forked process. It is not a child of this one, so that its status has to be asked for."""

    def _execute_child(self, *args: Any) -> None:
        given = _execute_child.bind(self, *args).arguments
        pipes = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        self._status = forker.ask(
            address(),
            given["args"],
            cwd=str(Path(given["cwd"] or ".").absolute()),
            env=given["env"],
            files=[end if end >= 0 else own for own, end in enumerate((pipes[0], pipes[3], pipes[5]))],
            new_session=given["start_new_session"],
        )
        self.pid = int(self._status.recv(16))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined] # not public

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Return its id and status, as `os.waitpid` does."""
        if wait_flags and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        with self._status:
            return self.pid, int(self._status.recv(16))

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined] # not public
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)  # type: ignore[attr-defined] # not public
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined] # not public
        return self.returncode


@cache
def address() -> str:
    """Start the process that forks, which ends with this one; return its address."""
    folder = _folder()
    process = subprocess.Popen(
        [sys.executable, forker.__file__, f"{folder}/forker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.communicate)
    return f"{folder}/forker"


@cache
def command() -> Path:
    """Return the path of a program `bespeak` that starts warm, for shells and for clients that start a server."""
    place = Path(_folder()) / "bespeak"
    called = f"run_command({address()!r}, {forker.acts_at_start(os.environ)!r}, '-m', 'bespeak')"
    lines = (f"#!{sys.executable} -SE", "import sys", f"sys.path[0] = {str(ROOT)!r}")
    place.write_text("\n".join((*lines, "from tests.forker import run_command", called, "")))
    place.chmod(0o755)
    return place


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="bespeak-warm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
