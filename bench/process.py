"""A server under measurement, in its own process on its own core, terminated by its pid."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from loader import message_length

HERE = Path(__file__).resolve().parent
START_LIMIT = 120.0
REPLY_LIMIT = 60.0


@contextlib.contextmanager
def on_core(position: int) -> Iterator[None]:
    """Pin processes started inside the block to one core, if there are at least two and the system supports it."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield
        return
    os.sched_setaffinity(0, {cores[position]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Peer:
    """A plain client connection: one request, one complete reply."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_LIMIT)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, request: bytes) -> bytes:
        """Send a request and read the whole reply."""
        self._socket.sendall(request)
        reply = b""
        while not (reply and message_length(reply, 0)):
            part = self._socket.recv(1 << 20)
            if not part:
                raise ConnectionError("the server closed the connection instead of answering")
            reply += part
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class ServerProcess:
    """A server that is running and accepts connections."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, start_seconds: float) -> None:
        self.process = process
        self.port = port
        self.start_seconds = start_seconds
        """Seconds from the start of the process to the first accepted connection."""

    def exchange(self, request: bytes) -> bytes:
        """Send one request over a new connection."""
        peer = Peer(self.port)
        try:
            return peer.exchange(request)
        finally:
            peer.close()

    def cpu_seconds(self) -> float:
        """Return the processor time used so far, by its workers too. Unlike wall time, it is comparable on a busy
        machine.
        """
        pids, total = [self.process.pid], 0.0
        while pids:
            pid = pids.pop()
            total += _cpu_seconds(pid)
            children = Path(f"/proc/{pid}/task/{pid}/children")
            pids += map(int, children.read_text().split()) if children.exists() else ()
        return total

    def rss_mb(self) -> float:
        """Return the resident memory."""
        status = Path(f"/proc/{self.process.pid}/status")
        if status.exists():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
            return int(line.split()[1]) / 1024
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, check=True)
        return int(shown.stdout) / 1024


def _cpu_seconds(pid: int) -> float:
    scheduler = Path(f"/proc/{pid}/schedstat")
    if scheduler.exists():
        return int(scheduler.read_text().split()[0]) / 1e9
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return math.nan
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(command: Sequence[str], port: int) -> Iterator[ServerProcess]:
    """Start a server that will listen on `port`, wait until it does, and terminate it afterwards."""
    paths = (str(HERE), *filter(None, [os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        with on_core(0):
            process = subprocess.Popen(
                [sys.executable, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_until_listening(process, port, start)
            yield ServerProcess(process, port, time.perf_counter() - start)
        except BaseException:
            output.seek(0)
            sys.stderr.write(output.read()[-4000:].decode(errors="replace"))
            raise
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, start: float) -> None:
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"the server exited at once with code {process.returncode}")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if time.perf_counter() - start > START_LIMIT:
            raise RuntimeError(f"the server did not listen within {START_LIMIT:.0f} s")
        time.sleep(0.005)
