"""AGTP over TCP and TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

from bespeak.faces.connection import FaceConnection, Shared
from bespeak.faces.limits import DEFAULT_TIMEOUTS, Capacity, Timeouts
from bespeak.faces.server import FaceServer
from bespeak.protocol.exchange.messages import Connection, Handler, Malformed, Request, Response, Stream
from bespeak.protocol.translation import RequestReader, messages_of, to_bytes
from bespeak.protocol.wire.head import HTTP_REQUEST
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits


class AgtpConnection(FaceConnection[Request]):
    __slots__ = ("_handler",)
    reader: RequestReader

    def __init__(self, shared: Shared, handler: Handler, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(shared, RequestReader(limits), loop)
        self._handler = handler

    def begin(self, peer: Connection) -> None:
        """Record the peer's address and certificate; every request carries them to the handler."""
        self.peer = self.reader.connection = peer

    def answer(self, request: Request) -> bytes | Coroutine[Any, Any, bytes]:
        answer = self._handler(request)
        return to_bytes(answer) if isinstance(answer, Response) else self._wait_for(answer)

    def refuse(self, fault: Malformed) -> bytes:
        refusal = to_bytes(self._handler.malformed(fault, self.peer))
        # An HTTP client discards other protocols unread, so it is told in its own (the drafts leave this open).
        return b"HTTP/1.1" + refusal.removeprefix(b"AGTP/1.0") if HTTP_REQUEST in fault.message else refusal

    def end_stream(self) -> None:
        self.peer.end()

    async def _wait_for(self, answer: Coroutine[Any, Any, Response]) -> bytes:
        response = await answer
        return to_bytes(response) if response.stream is None else await self._send_stream(response, response.stream)

    async def _send_stream(self, response: Response, stream: Stream) -> bytes:
        """Send the messages of a stream, each when the peer has read enough; return the last one."""
        async with aclosing(messages_of(response, stream)) as messages:
            async for message, is_last in messages:
                if is_last:
                    return to_bytes(message)
                await self._write_part(to_bytes(message))
                if self._leaving:
                    break
        return b""


class AgtpServer(FaceServer):
    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        capacity: Capacity | None = None,
    ) -> None:
        super().__init__(timeouts=timeouts, capacity=capacity)
        self._handler = handler
        self._limits = limits

    def connect(self, shared: Shared) -> AgtpConnection:
        return AgtpConnection(shared, self._handler, self._limits, asyncio.get_running_loop())

    def refuse(self, fault: Malformed) -> bytes:
        return to_bytes(self._handler.malformed(fault, Connection()))
