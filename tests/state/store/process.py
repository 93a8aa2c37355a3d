"""A Python process of its own that uses a store, for what one process cannot do to itself."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRELUDE = """
import asyncio, os, pathlib, resource, sqlite3, sys
from bespeak.errors import *
from bespeak.state.store import file_lock, sqlite
from bespeak.state.store.command import *
from bespeak.state.store.commands.nonces import UseNonce
from bespeak.state.store.opening import open_store
"""
_AS_NOBODY = """
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({gid}); os.setuid({uid})
"""


def run(code: str, *arguments: object, unprivileged: bool = False) -> subprocess.CompletedProcess[str]:
    """Run code to its end; `unprivileged`: as somebody whom permissions concern."""
    command = [sys.executable, "-c", _code(code, unprivileged=unprivileged), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def running(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Code that has said `ready` and waits on its standard input; killed at the end of the block."""
    command = [sys.executable, "-c", _code(code), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait(20)


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that a process without privileges can reach, which that of pytest is not."""
    with tempfile.TemporaryDirectory(prefix="bespeak-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o777)
        yield folder


def _code(code: str, *, unprivileged: bool = False) -> str:
    nobody = pwd.getpwnam("nobody")
    return _PRELUDE + (_AS_NOBODY.format(uid=nobody.pw_uid, gid=nobody.pw_gid) if unprivileged else "") + code


IS_ROOT = os.geteuid() == 0
