"""A small handler and servers on loopback ports for the transports' tests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response


class StubHandler:
    """Answers with what it was asked. `/wait` waits for `gate`, `/turn` for one turn of the loop; `/big` is big."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        self.finished = asyncio.Event()
        self.requests: list[Request] = []
        self.faults: list[Malformed] = []

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response]:
        self.requests.append(request)
        match request.path:
            case "/wait":
                return self._after(self.gate.wait(), request)
            case "/turn":
                return self._after(asyncio.sleep(0), request)
            case "/big":
                return Response(200, b"x" * int(request.query))
            case "/bug":
                raise RuntimeError("a handler never raises, this one does")
        return self._answer(request)

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        self.faults.append(fault)
        return Response(fault.status, fault.code.encode())

    async def _after(self, wait: Awaitable[object], request: Request) -> Response:
        self.waiting.set()
        await wait
        self.finished.set()
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        text = f"{request.method} {request.path} {len(request.body)} #{request.connection.answered}"
        return Response(200, text.encode())


@pytest.fixture
async def handler() -> StubHandler:
    return StubHandler()


Serve = Callable[..., Awaitable[tuple[AgtpServer, int]]]


@pytest.fixture
async def serve(handler: StubHandler) -> AsyncIterator[Serve]:
    """Return a function that starts a server of a stub handler; it is stopped at the end of the test."""
    async with AsyncExitStack() as stack:

        async def start(*, ssl: Any = None, **options: Any) -> tuple[AgtpServer, int]:
            server = AgtpServer(handler, **options)
            [(_, port)] = await server.start("127.0.0.1", 0, ssl=ssl)
            stack.push_async_callback(server.close)
            return server, port

        yield start


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """Return a port whose listener accepts no connections and whose queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])
