"""A separate Python process that uses a store, for tests that end or restrict it."""

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
from bespeak.state.store import sqlite, sqlite_file
from bespeak.state.store.store import *
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.settings import open_store
"""
_AS_NOBODY = """
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({gid}); os.setuid({uid})
"""


def run(code: str, *arguments: object, unprivileged: bool = False) -> subprocess.CompletedProcess[str]:
    """Run code to its end; `unprivileged` runs it without root rights."""
    command = [sys.executable, "-c", _code(code, unprivileged=unprivileged), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def running(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run code until it prints `ready` and waits on standard input; kill it at the end of the block."""
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
    """Make a folder that an unprivileged process can reach, unlike that of pytest."""
    with tempfile.TemporaryDirectory(prefix="bespeak-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o777)
        yield folder


def _code(code: str, *, unprivileged: bool = False) -> str:
    nobody = pwd.getpwnam("nobody")
    return _PRELUDE + (_AS_NOBODY.format(uid=nobody.pw_uid, gid=nobody.pw_gid) if unprivileged else "") + code


IS_ROOT = os.geteuid() == 0
