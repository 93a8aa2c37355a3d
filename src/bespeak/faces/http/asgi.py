"""The words of ASGI, as types, an answer in them, and one request to an application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from bespeak.protocol.wire.limits import RESPONSE_LIMITS

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
"""Names in lower case."""


class Reply(NamedTuple):
    """An answer of HTTP. For HEAD the body is left out when it is sent, so that its length can still be told."""

    status: int
    headers: Headers
    body: bytes


async def send_reply(reply: Reply, http_method: str, send: Send) -> None:
    """Send an answer as ASGI wants it."""
    await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
    await send({"type": "http.response.body", "body": b"" if http_method == "HEAD" else reply.body})


async def call_application(app: Application, scope: Scope, body: bytes) -> Reply:
    """Pass a whole request to an application and collect its answer, which is sent when the application returns."""
    cycle = _Cycle(body)
    try:
        await app(scope, cycle.receive, cycle.send)
    finally:
        cycle.ended.set()
    if cycle.start is None or not cycle.complete:
        raise RuntimeError("The application returned without a whole answer.")
    reply = Reply(cycle.start["status"], list(cycle.start.get("headers", ())), b"".join(cycle.parts))
    if scope["method"] != "HEAD" and all(name != b"content-length" for name, _ in reply.headers):
        reply.headers.append((b"content-length", b"%d" % len(reply.body)))
    return reply


class _Cycle:
    """The two ends of an application: the request it receives and the answer it sends."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.start: Message | None = None
        self.parts: list[bytes] = []
        self._size = 0
        self.complete = False
        self.ended = asyncio.Event()

    async def receive(self) -> Message:
        """Give the request, then nothing until the answer is complete."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start" and self.start is None:
            self.start = message
        elif message["type"] == "http.response.body" and self.start is not None and not self.complete:
            part = message.get("body", b"")
            self.parts.append(part)
            self._size += len(part)
            if self._size > RESPONSE_LIMITS.body:
                raise RuntimeError(f"The application's answer is larger than {RESPONSE_LIMITS.body} bytes.")
            if not message.get("more_body", False):
                self.complete = True
                self.ended.set()
        else:
            raise RuntimeError(f"The application sent {message['type']!r} out of turn.")
