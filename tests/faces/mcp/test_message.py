"""Messages of clients: what is one, and the answer to what is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bespeak.faces.mcp.message import Message, Unreadable, read_message

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "a", "arguments": {"b": 1}}}


@pytest.mark.parametrize(
    "message",
    [
        CALL,
        {**CALL, "id": "x"},
        {"jsonrpc": "2.0", "method": "ping", "id": 0},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 3, "result": {"action": "accept"}},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "no", "data": 1}},
    ],
)
def test_requests_notifications_and_answers_are_messages(message: dict[str, Any]) -> None:
    assert isinstance(read_message(msgspec.json.encode(message)), Message)


def test_a_message_tells_what_it_is_about() -> None:
    found = read_message(msgspec.json.encode(CALL))
    assert isinstance(found, Message)
    assert found.params is not None
    assert (found.method, found.id, found.params.name, bytes(found.params.arguments)) == (
        "tools/call",
        7,
        "a",
        b'{"b":1}',
    )


@pytest.mark.parametrize(
    ("data", "code", "number"),
    [
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
    ],
)
def test_anything_else_is_answered_with_an_error(data: bytes, code: int, number: Any) -> None:
    found = read_message(data)
    assert isinstance(found, Unreadable)
    assert (found.code, found.id) == (code, number)
    assert msgspec.json.decode(found.encode())["error"] == {"code": code, "message": found.message}
