"""`bespeak serve`: what it shows of its answers, and `--reload`, which serves a changed file after a restart."""

from __future__ import annotations

import json
import os
import pty
import queue
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.process import serving

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


# The access log.


def read_until(terminal: int, done: Callable[[str], bool]) -> str:
    """Read from a terminal until enough has arrived."""
    shown = ""
    while not done(shown):
        assert select.select([terminal], [], [], 60)[0], f"nothing more than {shown!r}"
        shown += os.read(terminal, 65536).decode()
    return shown


def send(url: str, method: str, path: str, body: bytes = b"") -> int:
    return httpx.request(method, f"{url}{path}", content=body, trust_env=False, timeout=30).status_code


def refusals(url: str, port: int) -> None:
    """Send what a newcomer sends first: a path that does not exist, a method that is not offered, and worse."""
    assert send(url, "GET", "/nothing/here?token=hush") == 404
    assert send(url, "GET", "/greeting") == 405
    assert send(url, "PUT", "/greeting:fetch") == 405
    assert send(url, "POST", "/greeting:fetch", b"x" * 3_000_000) == 413
    assert send(url, "GET", "/llms.txt") == 200
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 400 ")


@pytest.mark.process
def test_a_terminal_shows_every_answer_and_what_was_refused_before_routing(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "bespeak", "serve", "app.py", "--agtp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    streams = {"stdout": subprocess.PIPE, "stderr": side}
    process = subprocess.Popen(command, cwd=tmp_path, env={**os.environ}, text=True, **streams)
    os.close(side)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1].rpartition(":")[2])
        url = process.stdout.readline().split()[1]
        refusals(url, port)
        with bespeak.connect_sync(f"agtp://127.0.0.1:{port}", scopes=["greeting:read"]) as service:
            service.call("FETCH", "/greeting")
        shown = read_until(terminal, lambda text: "200 FETCH /greeting" in text)
    finally:
        process.terminate()
        process.communicate()
        os.close(terminal)
    answers = [line.split(" ", 1)[1] for line in shown.splitlines() if re.match(r"\d\d:\d\d:\d\d [1-9]", line)]
    assert [re.sub(r"[0-9.]+ ms", "N ms", line) for line in answers] == [
        "404 GET /nothing/here anonymous N ms endpoint-not-found",
        "405 GET /greeting anonymous N ms method-not-allowed",
        "405 PUT /greeting:fetch anonymous N ms method-not-allowed",
        "413 content-too-large: refused before it was read",
        "200 GET /llms.txt anonymous N ms",
        "400 invalid-request-line: refused before it was read",
        "200 FETCH /greeting anonymous N ms",
    ]
    assert "hush" not in shown


@pytest.mark.process
def test_log_json_writes_whole_lines_and_no_path_that_no_contract_has(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with serving(tmp_path / "app.py", "--http", "127.0.0.1:0", "--workers", "2", "--log", "json") as served:
        refusals(served.url, served.port)
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: send(served.url, "GET", "/nothing"), range(100))) == {404}
        served.stop()
        assert served.process.stderr is not None
        lines = [json.loads(line) for line in served.process.stderr.read().splitlines()]
    told = [line for line in lines if line["logger"] == "bespeak.access"]
    first = {(one["status"], one.get("method"), one.get("path"), one.get("code")) for one in told}
    assert first == {
        (404, "GET", "/*/*", "endpoint-not-found"),
        (404, "GET", "/*", "endpoint-not-found"),
        (405, "GET", "/greeting", "method-not-allowed"),
        (405, "PUT", "/greeting:fetch", "method-not-allowed"),
        (413, None, None, "content-too-large"),
        (200, "GET", "/llms.txt", None),
        (400, None, None, "invalid-request-line"),
    }
    assert sum(one.get("path") == "/*" and one["status"] == 404 for one in told) == 100
    assert all(one["ms"] >= 0 for one in told if "method" in one)


@pytest.mark.process
def test_without_a_terminal_answers_are_not_logged(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    with serving(tmp_path / "app.py", "--http", "127.0.0.1:0") as served:
        refusals(served.url, served.port)
        served.stop()
        assert served.process.stderr is not None
        assert "bespeak.access" not in served.process.stderr.read()
