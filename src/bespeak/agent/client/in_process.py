"""In-process transport: sends the same bytes as over a socket directly to a handler."""

from __future__ import annotations

from bespeak.errors import RemoteProtocolError
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.translation import RequestReader, to_bytes
from bespeak.protocol.wire.connection import ClientConnection
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.protocol.wire.writer import Pairs


class InProcess:
    """Exchanger that calls a handler. All requests belong to one connection."""

    def __init__(self, handler: Handler, *, limits: Limits = DEFAULT_LIMITS, face: str = "agtp") -> None:
        """Call a handler; `face` is the face that its logs and its audit trail name."""
        self._handler = handler
        self._limits = limits
        self._connection = Connection(face=face, peer="in-process")

    async def request(
        self, method: str, target: str, headers: Pairs = (), body: bytes = b"", *, retry: bool = False
    ) -> ResponseMessage:
        """Send a request through both readers and writers and wait for its response. `retry` has no effect."""
        client, server = ClientConnection(), RequestReader(self._limits, self._connection)
        server.receive_data(client.send(method, target, headers, body))
        message = server.next_event()
        if isinstance(message, Request):
            answer = self._handler(message)
            if not isinstance(answer, Response):
                answer = await answer
        elif isinstance(message, Malformed):
            answer = self._handler.malformed(message, self._connection)
        else:
            raise RemoteProtocolError("The reader expects more data after a complete request.")
        self._connection.answered += 1
        client.receive_data(to_bytes(answer))
        event = client.next_event()
        if not isinstance(event, ResponseMessage):
            raise RemoteProtocolError(f"The handler did not return a valid AGTP response: {event}.")
        return event

    async def close(self) -> None:
        """Do nothing: no connections are open."""
