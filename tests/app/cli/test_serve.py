"""`bespeak serve --reload`: a changed file is served after a restart, and a broken one is waited out."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import bespeak
from bespeak.app.cli.serve import snapshot

APP = """
import bespeak

app = bespeak.App("Greeter", server_id="greeter.example", operator="Tests", contact="ops@greeter.example")


@app.endpoint("FETCH", "/greeting", impact="informational",
              intent="Fetch a greeting.", outcome="The greeting is returned.")
def greet() -> dict[str, str]:
    return {"text": "TEXT"}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Lines:
    """The output of a process, line by line, with a bound on each wait."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._lines.put(line)

    def until(self, text: str) -> str:
        seen = []
        while True:
            try:
                seen.append(self._lines.get(timeout=60))
            except queue.Empty:
                raise AssertionError(f"{text!r} was not printed, only {seen}") from None
            if text in seen[-1]:
                return seen[-1]


@contextmanager
def reloading(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], Lines]]:
    command = [sys.executable, "-m", "bespeak", "serve", "app.py", "--reload", "--agtp", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ}
    )
    try:
        yield process, Lines(process)
    finally:
        process.terminate()
        process.wait(30)


def greeting(port: int) -> str:
    with bespeak.connect_sync(f"agtp://127.0.0.1:{port}", scopes=["greeting:read"]) as service:
        return str(service.call("FETCH", "/greeting")["text"])


@pytest.mark.process
def test_a_change_is_served_after_a_restart_and_a_broken_one_is_waited_out(tmp_path: Path) -> None:
    app, port = tmp_path / "app.py", free_port()
    app.write_text(APP.replace("TEXT", "one"))
    with reloading(tmp_path, port) as (process, lines):
        lines.until("AGTP  agtp://")
        assert greeting(port) == "one"
        app.write_text("def broken(:\n")
        lines.until("reloading: app.py changed")
        lines.until("the server ended with code 2; it starts again after a change")
        app.write_text(APP.replace("TEXT", "three"))
        lines.until("AGTP  agtp://")
        assert greeting(port) == "three"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with pytest.raises(bespeak.UnreachableError):
        greeting(port)


@pytest.mark.process
def test_several_workers_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bespeak", "serve", "app.py", "--reload", "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--reload serves with one worker" in done.stderr


def test_the_files_of_tools_are_not_watched(tmp_path: Path) -> None:
    for name in (
        "app.py",
        "endpoints/book.toml",
        ".git/a.py",
        ".venv/b.py",
        "env/c.py",
        "__pycache__/d.py",
        "data.json",
    ):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    assert {Path(place).name for place in snapshot(tmp_path)} == {"app.py", "book.toml"}
