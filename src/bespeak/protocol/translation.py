"""Between the wire's messages and the exchange's values, for every transport that speaks AGTP."""

from __future__ import annotations

from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.status import OK, REASONS
from bespeak.protocol.wire.messages import RequestMessage, WireFault
from bespeak.protocol.wire.writer import encode_ok, encode_response


def to_request(message: RequestMessage, connection: Connection) -> Request:
    """A request as the handler sees it."""
    return Request(message.method, message.path, message.query, message.headers, message.body, connection)


def to_malformed(fault: WireFault) -> Malformed:
    """A fault as the handler sees it."""
    return Malformed(fault.status, fault.code, fault.message)


def to_bytes(response: Response) -> bytes:
    """Encode a handler's answer."""
    status = response.status
    if status == OK:
        return encode_ok(response.block.encoded, response.headers, response.body)
    return encode_response(status, REASONS.get(status, ""), response.block.encoded, response.headers, response.body)
