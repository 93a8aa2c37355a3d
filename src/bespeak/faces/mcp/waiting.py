"""An answer that has to be awaited: cancelled if the client wants it, kept alive as an event stream if it takes long.

It does what the SDK's transport does with a call, without its tasks and streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from bespeak.faces.http.asgi import Headers, HttpResponse, Receive, Scope, Send, send_response

INTERVAL: Final = 15.0
"""Seconds of silence after which a sign of life is sent, as by the SDK: proxies close connections that are idle."""

GRACE: Final = 0.05
"""Seconds after which it is noticed that the peer has left. Most answers are ready before, and need no task for it."""
_PING: Final = b": ping\r\n\r\n"


def event(message: bytes) -> bytes:
    """Write a message as an event of a stream."""
    return b"event: message\r\ndata: %b\r\n\r\n" % message


class Waiting:
    """The rest of an answer, as an ASGI application for one request."""

    def __init__(
        self,
        answer: Coroutine[Any, Any, HttpResponse],
        stream: Headers,
        *,
        cancelled: HttpResponse | None = None,
    ) -> None:
        """Await an answer, whose body is a message or an event; `stream` are the headers of an event stream.

        If the peer leaves, the call is cancelled, unless there is an answer to `cancelled` calls: then the client says
        so in another request.
        """
        self._answer = answer
        self._stream = stream
        self._cancelled = cancelled
        self._task: asyncio.Task[Any] | None = None
        self._send: Send
        self._called = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._begun = False
        self._ended = False

    async def notify(self, message: bytes) -> None:
        """Send a message before the answer, which makes it a stream of events."""
        await self._called.wait()
        await self._send_part(event(message))

    def cancel(self) -> None:
        """Cancel the call, because its client says so."""
        if self._task is not None and not self._ended:
            self._ended = True
            self._task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Await the answer in the current task and send it."""
        task = self._task = asyncio.current_task()
        assert task is not None
        self._send = send
        self._called.set()
        later = asyncio.get_running_loop().call_later(GRACE, self._begin_watch, receive)
        try:
            try:
                reply = await self._answer
            finally:
                later.cancel()
                if self._watching is not None:
                    self._watching.cancel()
        except asyncio.CancelledError:
            if not self._ended:
                raise
            task.uncancel()
            if self._cancelled is None:
                return
            reply = self._cancelled
        self._ended = True
        if self._begun:
            body = reply.body if reply.body.startswith(b"event:") else event(reply.body)
            await send({"type": "http.response.body", "body": body, "more_body": False})
        else:
            await send_response(reply, "POST", send)

    async def _send_part(self, part: bytes) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": list(self._stream)})
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    def _begin_watch(self, receive: Receive) -> None:
        self._watching = asyncio.create_task(self._watch(receive))

    async def _watch(self, receive: Receive) -> None:
        """Send signs of life until the peer leaves."""
        while True:
            try:
                async with asyncio.timeout(INTERVAL):
                    while (await receive())["type"] != "http.disconnect":
                        pass
                break
            except TimeoutError:
                await self._send_part(_PING)
        if self._cancelled is None:
            self.cancel()
