"""`make demo` starts the hotel, and every command it prints works as printed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.process import bespeak

pytestmark = pytest.mark.process

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


class Demo:
    """A running demo and what it printed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.process = start(folder, port)
        assert self.process.stdout is not None
        self.text = ""
        for line in self.process.stdout:
            self.text += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"agtp://127\.0\.0\.1:(\d+)", self.text)
        assert found, self.text
        self.port = int(found[1])

    def commands(self) -> list[str]:
        return re.findall(r"^    (\S*bespeak .*)$", self.text, re.MULTILINE)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = shlex.split(command)
        assert os.access(self.folder / program, os.X_OK)
        return bespeak(*arguments, cwd=self.folder)

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate()
        return self.process.returncode


def start(folder: Path, port: int) -> subprocess.Popen[str]:
    """Start the demo with SIGINT at its default: where the tests run in the background, it may be ignored."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, str(DEMO), str(port)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, inherited)


def new_demo(folder: Path) -> Demo:
    """Start a demo in another folder than the repository: what is printed must work from there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Demo(folder, port)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo that tests share and leave running."""
    demo = new_demo(tmp_path_factory.mktemp("demo"))
    yield demo
    demo.process.terminate()
    demo.process.communicate()


def test_every_printed_command_works(demo: Demo) -> None:
    discover, query, propose, book, once, refused, lint, conform = demo.commands()
    assert "BOOK" in demo.run(discover).stdout
    assert '"room_id": "105"' in demo.run(query).stdout
    proposed = demo.run(propose)
    assert '"room_id": "101"' in proposed.stdout
    assert "approved FIND /rooms/cheap" in proposed.stderr
    assert "Step 1: call QUERY /rooms" in proposed.stderr
    assert "reservation_id" in demo.run(book).stdout
    again = demo.run(book)
    assert (again.returncode, "room_unavailable" in again.stderr) == (1, True)
    kept = [demo.run(once) for _ in range(2)]
    assert kept[0].stdout == kept[1].stdout != ""
    assert [(ran.returncode, "earlier call" in ran.stderr) for ran in kept] == [(0, False), (0, True)]
    without = demo.run(refused)
    assert (without.returncode, "262 Authorization Required" in without.stderr) == (1, True)
    assert "score 100/100" in demo.run(lint).stdout
    assert demo.run(conform).returncode == 0


def test_addresses_for_curl_and_a_hand_written_request_are_answered(demo: Demo) -> None:
    rooms, document = re.findall(r"^    curl '?(\S+?)'?$", demo.text, re.MULTILINE)
    assert "105" in httpx.get(rooms, trust_env=False).text
    assert httpx.get(document, trust_env=False).json()["service"]["name"] == "Harbour Hotel"
    [by_hand] = re.findall(r"^    (\S*python -c .*)$", demo.text, re.MULTILINE)
    ran = subprocess.run(shlex.split(by_hand), cwd=demo.folder, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("AGTP/1.0 200 OK\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_its_server(tmp_path: Path, number: int) -> None:
    demo = new_demo(tmp_path)
    assert demo.stop(number) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", demo.port))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc")
def test_signals_during_startup_leave_no_server_behind(tmp_path: Path) -> None:
    demo = start(tmp_path, 4480)
    children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children")
    while not (server := children.read_text().strip()):
        assert demo.poll() is None
    for _ in range(20):
        demo.send_signal(signal.SIGTERM)
    demo.communicate(timeout=60)
    # A last signal may arrive while the interpreter ends, when its handlers are gone.
    assert demo.returncode in (0, -signal.SIGTERM)
    assert not Path(f"/proc/{server}").exists()


def test_the_next_free_port_is_taken_beside_another_demo_or_server(demo: Demo, tmp_path: Path) -> None:
    beside = Demo(tmp_path, demo.port)
    try:
        assert beside.port > demo.port
    finally:
        assert beside.stop(signal.SIGTERM) == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = Demo(tmp_path, port)
        assert demo.port > port
        assert demo.stop(signal.SIGTERM) == 0
