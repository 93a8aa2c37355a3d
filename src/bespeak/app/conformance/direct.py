"""Requests sent exactly as given, each on its own connection: a check sends what a well-behaved client cannot."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from bespeak.app.conformance.probe import Exchanged, Send
from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.wire.messages import Malformed, ResponseMessage
from bespeak.protocol.wire.reader import ResponseReader

_CHUNK: Final = 65536


def direct_sender(host: str, port: int, *, tls: ssl.SSLContext | None, timeout: float) -> Send:
    """Return a sender for one server. A new connection per request suits servers that close after each reply."""

    async def send(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Exchanged:
        if not f"{method}{target}".isprintable() or " " in method + target:
            # Both may come from the server's own manifest.
            raise LocalProtocolError(f"{method[:40]!a} {target[:80]!a} cannot be sent on a request line.")
        lines = [f"AGTP/1.0 {method} {target}", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        async with asyncio.timeout(timeout):
            reply = await _exchange(host, port, tls, head.encode() + body)
        return Exchanged(
            method,
            target,
            body,
            reply.status,
            reply.reason,
            reply.headers,
            reply.body,
            headers.get("Agent-ID"),
            headers.get("Authority-Scope"),
        )

    return send


async def _exchange(host: str, port: int, tls: ssl.SSLContext | None, data: bytes) -> ResponseMessage:
    incoming, outgoing = await asyncio.open_connection(host, port, ssl=tls)
    try:
        outgoing.write(data)
        with suppress(ConnectionError):  # a server may refuse and close before it has read everything
            await outgoing.drain()
        return await _read(incoming)
    finally:
        outgoing.close()
        with suppress(OSError):
            await outgoing.wait_closed()


async def _read(incoming: asyncio.StreamReader) -> ResponseMessage:
    reader = ResponseReader()
    while True:
        event = reader.next_event()
        if isinstance(event, ResponseMessage):
            return event
        if isinstance(event, Malformed):
            raise RemoteProtocolError(event.message)
        data = await incoming.read(_CHUNK)
        if not data:
            raise RemoteProtocolError("the server closed the connection before the response was complete")
        reader.receive_data(data)
