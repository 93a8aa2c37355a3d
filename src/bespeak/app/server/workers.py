"""Several processes on the same ports: each accepts connections itself (SO_REUSEPORT); a parent supervises them."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from bespeak.app.server.lifecycle import STOP_SIGNALS
from bespeak.app.server.settings import Settings
from bespeak.faces.listener import reserve_port
from bespeak.protocol.address import Address

_logger = logging.getLogger(__name__)

_RESTARTS_PER_MINUTE = 5
"""Maximum restarts per minute: a worker that keeps dying must be reported, not hidden behind restarts."""

WorkerMain = Callable[[Settings, str, Connection], None]
"""`(settings, updated, ready)`: serve until SIGTERM; send one message on `ready` once connections are accepted."""


class Workers:
    """The parent's view of its worker processes."""

    def __init__(self, settings: Settings, updated: str, main: WorkerMain) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._main = main
        self._updated = updated
        self._placeholders, self._settings = _reserve_ports(settings)
        self._processes: list[SpawnProcess] = []
        self._restarts: list[float] = []
        self._stopping = threading.Event()

    def run(self, ready: Callable[[Settings], None]) -> int:
        """Start all workers, announce once, restart dead ones, stop all on a signal; return the exit code."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        for _ in range(self._settings.workers):
            if not self._start():
                return self._end(2)
        ready(self._settings)
        while not self._stopping.is_set():
            wait([process.sentinel for process in self._processes], timeout=1.0)
            if not self._stopping.is_set() and not self._replace_fallen():
                return self._end(2)
        return self._end(0)

    def _start(self) -> bool:
        """Start one worker and wait until it accepts connections; return False if it died first."""
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._main, args=(self._settings, self._updated, sender), daemon=True)
        # A worker that is still importing has no handler yet: it inherits that Ctrl-C is left to its parent.
        interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.start()
        signal.signal(signal.SIGINT, interrupt)
        sender.close()
        try:
            receiver.recv()
        except EOFError:
            process.join()
            _logger.error("worker %s ended with code %s before it was ready", process.pid, process.exitcode)
            return False
        finally:
            receiver.close()
        self._processes.append(process)
        return True

    def _replace_fallen(self) -> bool:
        for process in [process for process in self._processes if not process.is_alive()]:
            self._processes.remove(process)
            _logger.error("worker %s ended with code %s; starting another", process.pid, process.exitcode)
            now = time.monotonic()
            self._restarts = [moment for moment in self._restarts if now - moment < 60] + [now]
            if len(self._restarts) > _RESTARTS_PER_MINUTE:
                _logger.error("more than %s workers died within a minute; stopping", _RESTARTS_PER_MINUTE)
                return False
            if not self._start():
                return False
        return True

    def _stop(self, *_: object) -> None:
        self._stopping.set()
        for process in self._processes:
            process.terminate()

    def _end(self, code: int) -> int:
        self._stop()
        deadline = time.monotonic() + self._settings.drain_timeout + 5
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        for placeholder in self._placeholders:
            placeholder.close()
        return code


def _reserve_ports(settings: Settings) -> tuple[list[socket.socket], Settings]:
    """Choose and reserve the ports before the first worker starts."""
    with contextlib.ExitStack() as opened:
        placeholders: list[socket.socket] = []
        chosen: dict[str, Any] = {}
        for name in ("address", "http", "operations"):
            wanted: Address | None = getattr(settings, name)
            if wanted is not None:
                placeholder, chosen[name] = reserve_port(wanted, shared=True)
                placeholders.append(opened.enter_context(placeholder))
        opened.pop_all()
    return placeholders, replace(settings, **chosen)
