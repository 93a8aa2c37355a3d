"""A response that is sent in parts, while the application is still working."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from bespeak.faces.http.asgi import Headers, HttpResponse, Message

_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_LAST: Final = b"0\r\n\r\n"

WritePart = Callable[[bytes], Awaitable[None]]
"""Writes bytes to the peer; waits while it does not read."""
EncodeHead = Callable[[HttpResponse], bytes]
"""Encodes a response, here one without its body."""


class Stream:
    """The `receive` and `send` callables of one call of an application. A response with a length is not chunked."""

    def __init__(self, body: bytes, write: WritePart, encode: EncodeHead, *, chunked: bool) -> None:
        """Stream to a peer; without `chunked`, as in HTTP/1.0, the end of the connection is the end of the body."""
        self._body: bytes | None = body
        self._write = write
        self._encode = encode
        self._chunked = chunked
        self._head = b""
        self.begun = False
        """True if the response has begun."""
        self.complete = False
        self.gone = asyncio.Event()
        """Event that is set when the peer is gone or the server stops."""

    async def receive(self) -> Message:
        """Return the request; after that, wait until the peer is gone."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response. A head without a length is sent at once: the body may take long to begin."""
        if message["type"] == "http.response.start" and not self.begun:
            headers: Headers = list(message.get("headers", ()))
            self._chunked = self._chunked and not any(name == b"content-length" for name, _ in headers)
            self.begun = True
            head = self._encode(
                HttpResponse(message["status"], [*headers, *([_CHUNKED] if self._chunked else [])], b"")
            )
            if self._chunked:
                await self._write(head)
            else:
                self._head = head
        elif message["type"] == "http.response.body" and self.begun and not self.complete:
            part = message.get("body", b"")
            self.complete = not message.get("more_body", False)
            if self._chunked:
                part = b"%x\r\n%b\r\n" % (len(part), part) if part else b""
                part += _LAST if self.complete else b""
            head, self._head = self._head, b""
            if head or part:
                await self._write(head + part)
        else:
            raise RuntimeError(f"The application sent an unexpected {message['type']!r}.")
