"""The words of ASGI, as types, and an answer in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

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
