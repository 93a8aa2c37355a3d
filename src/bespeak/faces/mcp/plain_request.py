"""A plain request that is answered without the SDK: who sent it, and the form of its answer."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from bespeak.faces.http.asgi import Headers, HttpResponse
from bespeak.faces.mcp.live_sessions import LiveSession
from bespeak.faces.mcp.plain_message import PlainMessage
from bespeak.faces.mcp.waiting import event
from bespeak.runtime.call import Call

_ENCODE: Final = msgspec.json.Encoder().encode
_JSON: Final = (b"content-type", b"application/json")
_STREAM: Final[Headers] = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


class PlainRequest(NamedTuple):
    """A request with its verified caller."""

    message: PlainMessage
    call: Call
    sent: dict[str, str]
    """Headers that apply to the call."""
    is_modern: bool
    session: LiveSession | None
    """Session of an earlier revision; None if there are none."""

    def reply(self, member: bytes, value: bytes) -> HttpResponse:
        """Write the answer in the form of the client's era."""
        body = b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (_ENCODE(self.message.id), member, value)
        if self.is_modern:
            return HttpResponse(200, [(b"content-length", b"%d" % len(body)), _JSON], body)
        body = event(body)
        return HttpResponse(200, [*self.stream, (b"content-length", b"%d" % len(body))], body)

    @property
    def stream(self) -> Headers:
        """Headers of a stream of events."""
        if self.session is None:
            return _STREAM
        return [*_STREAM, (b"mcp-session-id", self.session.session_id.encode())]
