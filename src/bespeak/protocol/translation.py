"""Between the wire and the exchange, for every AGTP transport: requests from bytes, responses to bytes."""

from __future__ import annotations

from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.status import OK, REASONS
from bespeak.protocol.wire.head import INVALID_REQUEST_LINE, RequestHead
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.protocol.wire.reader import Reader
from bespeak.protocol.wire.request_heads import request_heads
from bespeak.protocol.wire.writer import encode_ok, encode_response


class RequestReader(Reader[RequestHead, Request]):
    """The server's reader: returns requests as the handler receives them."""

    __slots__ = ("connection",)

    def __init__(self, limits: Limits = DEFAULT_LIMITS, connection: Connection | None = None) -> None:
        super().__init__(request_heads(limits), limits, INVALID_REQUEST_LINE)
        self.connection = connection or Connection()

    def build(self, head: RequestHead, body: bytes) -> Request:
        """Build a request from head and body."""
        return Request(head.method, head.path, head.query, head.headers, body, self.connection)


def to_bytes(response: Response) -> bytes:
    """Encode a response."""
    status = response.status
    if status == OK:
        return encode_ok(response.block.encoded, response.headers, response.body)
    return encode_response(status, REASONS.get(status, ""), response.block.encoded, response.headers, response.body)
