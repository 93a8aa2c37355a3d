"""The client's end of an AGTP connection, sans-IO: responses in, encoded requests out."""

from __future__ import annotations

from bespeak.protocol.wire.limits import RESPONSE_LIMITS, Limits
from bespeak.protocol.wire.messages import Malformed, Pause, ResponseMessage
from bespeak.protocol.wire.reader import ResponseReader
from bespeak.protocol.wire.writer import Pairs, encode_request


class ClientConnection(ResponseReader):
    """Reads responses. An unsolicited response is a fault: it would be taken as the answer to the next request."""

    __slots__ = ("awaited",)

    def __init__(self, limits: Limits = RESPONSE_LIMITS) -> None:
        super().__init__(limits)
        self.awaited = 0
        """Number of requests sent and not yet answered."""

    def send(self, method: str, target: str, headers: Pairs = (), body: bytes = b"") -> bytes:
        """Encode the next request."""
        data = encode_request(method, target, headers, body)
        self.awaited += 1
        return data

    def next_event(self) -> ResponseMessage | Malformed | Pause:
        """Return the next response, the fault that ended reading, or a Pause."""
        if not self.awaited and self.buffered:
            return self._fail(
                Malformed(400, "unexpected-response", "The server sent a response that no request asked for.")
            )
        event = super().next_event()
        if isinstance(event, ResponseMessage):
            self.awaited -= 1
        return event
