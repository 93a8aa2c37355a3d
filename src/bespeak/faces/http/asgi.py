"""ASGI types, replies, and calls of an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, BinaryIO, NamedTuple

from bespeak.protocol import status
from bespeak.protocol.wire.messages import RESPONSE_LIMITS

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]  # headers as pairs; names in lower case


class FilePart(NamedTuple):
    """A file, or a part of one, that is read while it is sent."""

    open: Callable[[], BinaryIO]
    start: int
    size: int


class HttpResponse(NamedTuple):
    """An HTTP response. For HEAD the body is dropped when it is sent, after its length has been written."""

    status: int
    headers: Headers
    body: bytes
    file: FilePart | None = None  # what is sent in place of the body


async def send_response(
    reply: HttpResponse, http_method: str, send: Send, gone: Callable[[], bool] = lambda: False
) -> None:
    """Send a response; a file is read no further if the client is `gone`."""
    start = {"type": "http.response.start", "status": reply.status, "headers": reply.headers}
    if reply.file is None or not reply.file.size or http_method == "HEAD":
        await send(start)
        await send({"type": "http.response.body", "body": b"" if http_method == "HEAD" else reply.body})
        return
    left = reply.file.size
    with reply.file.open() as source:  # before the head: a file that cannot be read is a failure of the service
        source.seek(reply.file.start)
        await send(start)
        while left and not gone():
            part = await asyncio.to_thread(source.read, min(left, 262_144))
            if not part:
                raise RuntimeError("A file has become shorter while it was sent.")
            left -= len(part)
            await send({"type": "http.response.body", "body": part, "more_body": left > 0})


async def call_application(app: Application, scope: Scope, body: bytes) -> HttpResponse:
    """Pass a complete request to an application and collect its reply, which is sent when the application returns."""
    cycle = _Collected(body)
    try:
        await app(scope, cycle.receive, cycle.send)
    finally:
        cycle.gone.set()
    if cycle.start is None or not cycle.complete:
        raise RuntimeError("The application returned without a complete response.")
    reply = HttpResponse(cycle.start["status"], list(cycle.start.get("headers", ())), b"".join(cycle.parts))
    if reply.status in (status.NO_CONTENT, status.NOT_MODIFIED):
        return reply._replace(body=b"")  # RFC 9110 8.6: a length would be that of another answer
    if scope["method"] != "HEAD" and all(name != b"content-length" for name, _ in reply.headers):
        reply.headers.append((b"content-length", b"%d" % len(reply.body)))
    return reply


class RequestBody:
    """The `receive` callable of one call of an application with a complete request."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.complete = False
        self.gone = asyncio.Event()  # set when the reply is complete, the peer is gone or the server stops

    async def receive(self) -> Message:
        """Return the request; after that, wait for the end."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}


class _Collected(RequestBody):
    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.start: Message | None = None
        self.parts: list[bytes] = []
        self._size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self.start is None:
            self.start = message
        elif message["type"] == "http.response.body" and self.start is not None and not self.complete:
            part = message.get("body", b"")
            self.parts.append(part)
            self._size += len(part)
            if self._size > RESPONSE_LIMITS.body:
                raise RuntimeError(f"The application's response is larger than {RESPONSE_LIMITS.body} bytes.")
            if not message.get("more_body", False):
                self.complete = True
                self.gone.set()
        else:
            raise RuntimeError(f"The application sent an unexpected {message['type']!r}.")
