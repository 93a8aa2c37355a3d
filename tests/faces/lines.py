"""The smallest face there is: a line is a request, and is said again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from bespeak.faces.connection import FaceConnection, Shared
from bespeak.faces.limits import DEFAULT_TIMEOUTS, Capacity, Timeouts
from bespeak.faces.server import FaceServer
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.messages import CLOSED, NEED_DATA, Pause


class Lines:
    """The reader: `?` begins a line that is refused."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._ended = False

    @property
    def buffered(self) -> int:
        return sum(map(len, self._lines)) + len(self._rest)

    @property
    def held(self) -> int:
        return self.buffered

    def discard(self) -> None:
        self._lines.clear()
        self._rest = b""

    def receive_data(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines += lines

    def receive_eof(self) -> None:
        self._ended = True

    def next_event(self) -> bytes | Malformed | Pause:
        if not self._lines:
            return CLOSED if self._ended else NEED_DATA
        line = self._lines.popleft()
        return Malformed(400, "question", "A question.") if line.startswith(b"?") else line


class LineConnection(FaceConnection[bytes]):
    """Says every line again; `wait` after the gate is open, `cancel` in a cancelled task.

    `last` is said for the last time; `last 9` and `large 9` are nine bytes. `I am X` names the agent.
    """

    def __init__(self, server: LineServer, shared: Shared) -> None:
        super().__init__(shared, Lines(), asyncio.get_running_loop())
        self._server = server

    def answer(self, request: bytes) -> bytes | Coroutine[Any, Any, bytes]:
        self._server.seen.append((request, self.transport))
        if request == b"wait":
            return self._wait_for_gate()
        if request == b"fail":
            raise ZeroDivisionError
        if request == b"give up":
            raise asyncio.CancelledError
        if request in (b"cancel", b"cancel and wait"):
            asyncio.current_task().cancel()
            if request == b"cancel and wait":
                return self._wait_for_gate()
        if request.startswith(b"I am "):
            self.peer.agent_id = request[5:].decode()
        self.closing = request.startswith(b"last")
        return b"x" * int(request.split()[1]) if request.startswith((b"last ", b"large ")) else request + b"\n"

    async def _wait_for_gate(self) -> bytes:
        await self._server.gate.wait()
        self._server.done += 1
        return b"waited\n"

    def refuse(self, fault: Malformed) -> bytes:
        return self._server.refuse(fault)


class LineServer(FaceServer):
    """Serves lines."""

    def __init__(self, capacity: Capacity | None = None, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> None:
        self.capacity = capacity or Capacity(10)
        super().__init__(timeouts=timeouts, capacity=self.capacity)
        self.gate = asyncio.Event()
        self.seen: list[tuple[bytes, object]] = []
        self.done = 0
        self.port = 0

    def connect(self, shared: Shared) -> LineConnection:
        return LineConnection(self, shared)

    def refuse(self, fault: Malformed) -> bytes:
        return fault.code.encode() + b"\n"


async def call(server: LineServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server that is started with its first caller."""
    if not server.port:
        [(_, server.port)] = await server.start("127.0.0.1", 0)
    return await asyncio.open_connection("127.0.0.1", server.port)
