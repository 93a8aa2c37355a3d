"""Which messages are plain, and which envelopes the SDK's models accept."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.faces.mcp.mutated_requests import CAPABILITIES, CLIENT, KEY, LEVEL, VERSION
from tests.faces.mcp.tools import modern
from tests.service import build

from bespeak.faces.mcp import http
from bespeak.faces.mcp.http import PlainRequest, accepts, accepts_both, read_plain
from bespeak.faces.mcp.sessions import ClientMessage, InvalidMessage, McpSession, read_message
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.runtime.call import Call


def call(meta: dict[str, Any] | None = None, **changes: Any) -> bytes:
    message = modern("tools/call", name="query_rooms", arguments={"beds": 2})[1] | changes
    message["params"] = {**message["params"], "_meta": {**message["params"]["_meta"], **(meta or {})}}
    return json.dumps(message).encode()


def test_a_call_is_read_with_its_envelope_and_a_list_for_its_first_page() -> None:
    found = read_plain(call({KEY: "k", "progressToken": 5, "traceparent": "00"}))
    assert found is not None
    assert (found.id, found.name, found.arguments) == (7, "query_rooms", {"beds": 2})
    assert (found.envelope.key, found.envelope.token) == ("k", 5)
    message = modern("tools/list")[1]
    listed = read_plain(json.dumps(message).encode())
    assert listed is not None
    assert (listed.name, listed.arguments) == (None, {})
    for member, value in (("cursor", "2"), ("name", "x"), ("arguments", None)):
        more = {**message, "params": {**message["params"], member: value}}
        assert read_plain(json.dumps(more).encode()) is None


@rows(
    "body",
    *(call(id=None), call(id=1.0), call(id=2**63), call(id=True), call(jsonrpc="1.0"), call(method="ping")),
    *(call(x=1), call({"x": 1}), call({"progressToken": None}), b"[]", b"", b"{"),
    call().replace(b'"name": "query_rooms", ', b""),
    call().replace(b'"_meta"', b'"_meta": %b, "_meta"' % (b"1" * 5000)),
    b"[" + call() + b"]",
    call().replace(b'"beds": 2', b'"beds": NaN'),
    call().replace(b'"beds": 2', b'"beds": "\xff"'),
    call().replace(b'"arguments"', b'"requestState": "x", "arguments"'),
)
def test_other_messages_are_not_plain(body: bytes) -> None:
    assert read_plain(body) is None


def test_envelopes_are_absent_in_earlier_revisions_and_few_are_remembered() -> None:
    message = b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "query_rooms"}}'
    found = read_plain(message)
    assert found is not None
    assert (found.name, found.envelope.reserved, found.arguments) == ("query_rooms", 0, {})
    assert not accepts(found.envelope)
    assert read_plain(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}') is not None
    for number in range(300):
        found = read_plain(call({CLIENT: {"name": "n", "version": str(number)}}))
        assert found is not None
        assert accepts(found.envelope)
    assert http._is_valid_envelope.cache_info().currsize <= 256


@rows(
    "name, plain",
    *(("claudecode/toolUseId", True), ("com.example/x", True), ("example/", True), ("x", False), ("é/x", False)),
    *(("mcp.dev/x", False), ("tools.mcp/x", False), ("io.modelcontextprotocol/related-task", False)),
    *(("bespeak/fields", False), ("Bespeak/fields", False)),
)
def test_members_of_other_vendors_are_not_read(name: str, plain: bool) -> None:
    found = read_plain(call({name: {"a": [1.5, 2**70]}, KEY: "k"}))
    assert (found is not None) is plain
    assert found is None or (found.envelope.key, found.envelope.reserved) == ("k", 3)


@pytest.mark.parametrize("name", [CAPABILITIES, CAPABILITIES.replace("c", "\\u0063", 1)])
@pytest.mark.parametrize("value", [b"1" * 5000, b'"\xff"', b"[" * 3000 + b"]" * 3000])
def test_a_member_that_is_written_twice_must_be_readable_both_times(name: str, value: bytes) -> None:
    twice = call().replace(b'"_meta": {', b'"_meta": {"%b": %b, ' % (name.encode(), value))
    assert read_plain(twice) is None
    assert read_plain(twice.replace(value, b"1")) is not None


@rows(
    "meta, valid",
    ({}, True),
    ({CAPABILITIES: {"elicitation": {}}, LEVEL: "debug"}, True),
    ({CAPABILITIES: []}, False),
    ({VERSION: "2025-11-25"}, False),
    ({CLIENT: {"name": "n"}}, False),
    ({LEVEL: "loud"}, False),
    ({CAPABILITIES: {"experimental": {"x" * 5000: {}}}}, False),  # too long to be remembered
)
def test_an_envelope_is_accepted_if_the_sdk_accepts_it(meta: dict[str, Any], valid: bool) -> None:
    found = read_plain(call(meta))
    assert found is not None
    assert [accepts(found.envelope) for _ in range(2)] == [valid, valid]


@rows(
    "accept, both",
    ("application/json, text/event-stream", True),
    ("*/*", True),
    ("application/json", False),
    ("", False),
    ("é, */*", False),
)
def test_clients_must_take_json_and_streams(accept: str, both: bool) -> None:
    assert accepts_both(accept) is both


def request(session: McpSession | None = None, *, is_modern: bool) -> PlainRequest:
    message = read_plain(b'{"jsonrpc": "2.0", "id": "a", "method": "tools/list"}')
    assert message is not None
    call = Call(Request("DISCOVER", "/", "", {}, b"", Connection()), build().dispatcher.server)
    return PlainRequest(message, call, {}, is_modern, session)


def test_modern_answers_are_json_and_messages_tell_what_they_are_about() -> None:
    reply = request(is_modern=True).reply(b"result", b"{}")
    assert reply.body == b'{"jsonrpc":"2.0","id":"a","result":{}}'
    assert dict(reply.headers) == {b"content-type": b"application/json", b"content-length": b"38"}
    found = read_message(msgspec.json.encode(CALL))
    assert isinstance(found, ClientMessage)
    assert (found.method, found.id, found.params.name, bytes(found.params.arguments)) == (
        *("tools/call", 7, "a", b'{"b":1}'),
    )


@pytest.mark.parametrize("session", [None, McpSession("s1", None, "")])
def test_an_answer_before_it_is_an_event(session: McpSession | None) -> None:
    reply = request(session, is_modern=False).reply(b"error", b"{}")
    assert reply.body == b'event: message\r\ndata: {"jsonrpc":"2.0","id":"a","error":{}}\r\n\r\n'
    headers = dict(reply.headers)
    assert headers[b"content-type"] == b"text/event-stream"
    assert headers.get(b"mcp-session-id") == (None if session is None else b"s1")


CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": {"b": 1}}}


@rows(
    "message",
    *(CALL, {**CALL, "id": "x"}, {"jsonrpc": "2.0", "method": "ping", "id": 0}),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 3, "result": {"action": "accept"}},
    {"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "no", "data": 1}},
)
def test_requests_notifications_and_answers_are_messages(message: dict[str, Any]) -> None:
    assert isinstance(read_message(msgspec.json.encode(message)), ClientMessage)


@rows(
    "data, code, number",
    (b"{", -32700, None),
    (b"", -32700, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": NaN}}', -32700, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": "\\ud800"}}', -32700, None),
    (b'{"a":' * 5000, -32700, None),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": 1e999}}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": 1e999 }, ]', -32600, None),
    (b"[]", -32600, None),
    (b'{"id": "x", "method": "ping"}', -32600, "x"),
    (b'{"jsonrpc": "1.0", "id": 3, "method": "ping"}', -32600, 3),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": []}', -32600, 3),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    (b'{"jsonrpc": "2.0", "id": 3}', -32600, 3),
    (b'{"jsonrpc": "2.0", "id": 3, "result": 5}', -32600, 3),
    (b'{"jsonrpc": "2.0", "id": 3, "error": "x"}', -32600, 3),
)
def test_anything_else_is_answered_with_an_error(data: bytes, code: int, number: Any) -> None:
    found = read_message(data)
    assert isinstance(found, InvalidMessage)
    assert (found.code, found.id) == (code, number)
    assert msgspec.json.decode(found.encode())["error"] == {"code": code, "message": found.message}
