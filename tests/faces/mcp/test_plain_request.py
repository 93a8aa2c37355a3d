"""The form of answers: JSON in the modern era, one event before it."""

from __future__ import annotations

import pytest
from tests.service import build

from bespeak.faces.mcp.lane import PlainRequest, read_plain
from bespeak.faces.mcp.sessions import LiveSession
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call


def request(session: LiveSession | None = None, *, is_modern: bool) -> PlainRequest:
    message = read_plain(b'{"jsonrpc": "2.0", "id": "a", "method": "tools/list"}')
    assert message is not None
    call = Call(Request("DISCOVER", "/", "", {}, b"", Connection()), build().dispatcher.server)
    return PlainRequest(message, call, {}, is_modern, session)


def test_an_answer_of_the_modern_era_is_json() -> None:
    reply = request(is_modern=True).reply(b"result", b"{}")
    assert reply.body == b'{"jsonrpc":"2.0","id":"a","result":{}}'
    assert dict(reply.headers) == {b"content-type": b"application/json", b"content-length": b"38"}


@pytest.mark.parametrize("session", [None, LiveSession("s1", None, 0.0)])
def test_an_answer_before_it_is_an_event(session: LiveSession | None) -> None:
    reply = request(session, is_modern=False).reply(b"error", b"{}")
    assert reply.body == b'event: message\r\ndata: {"jsonrpc":"2.0","id":"a","error":{}}\r\n\r\n'
    headers = dict(reply.headers)
    assert headers[b"content-type"] == b"text/event-stream"
    assert headers.get(b"mcp-session-id") == (None if session is None else b"s1")
