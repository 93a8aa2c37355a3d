"""One end of an AGTP connection without its socket: bytes in, messages out, and the bytes to send."""

from __future__ import annotations

from bespeak.protocol.wire.limits import RESPONSE_LIMITS, Limits
from bespeak.protocol.wire.messages import Pause, ResponseMessage, WireFault
from bespeak.protocol.wire.reader import RequestReader, ResponseReader
from bespeak.protocol.wire.writer import Pairs, encode_request, encode_response


class ServerConnection(RequestReader):
    """The server's end: requests come in, responses go out in the same order."""

    __slots__ = ()

    def send(self, status: int, reason: str, block: bytes = b"", headers: Pairs = (), body: bytes = b"") -> bytes:
        """The bytes of the next response."""
        return encode_response(status, reason, block, headers, body)


class ClientConnection(ResponseReader):
    """The client's end. A response nobody asked for is a fault: it would be taken for the next one's answer."""

    __slots__ = ("awaited",)

    def __init__(self, limits: Limits = RESPONSE_LIMITS) -> None:
        super().__init__(limits)
        self.awaited = 0
        """Requests sent and not yet answered."""

    def send(self, method: str, target: str, headers: Pairs = (), body: bytes = b"") -> bytes:
        """The bytes of the next request."""
        data = encode_request(method, target, headers, body)
        self.awaited += 1
        return data

    def next_event(self) -> ResponseMessage | WireFault | Pause:
        """The next response, the fault that ended the reading, or why there is neither."""
        if not self.awaited and self.buffered:
            return self._fail(WireFault(400, "unexpected-response", "The server sent bytes that answer no request."))
        event = super().next_event()
        if isinstance(event, ResponseMessage):
            self.awaited -= 1
        return event
