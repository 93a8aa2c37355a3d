"""The job every server here does: BOOK /room of AGTP-API 6.1, one schema in, one schema out, one handler."""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

METHOD: Final = "BOOK"
PATH: Final = "/room"
SCOPE: Final = "booking:room"

INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "guest_id": {"type": "string", "format": "uuid"},
        "room_id": {"type": "string", "minLength": 1, "maxLength": 64},
        "arrival": {"type": "string", "format": "date"},
        "departure": {"type": "string", "format": "date"},
    },
    "required": ["guest_id", "room_id", "arrival", "departure"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"reservation_id": {"type": "string", "format": "uuid"}},
    "required": ["reservation_id"],
}

GOOD: Final = {
    "guest_id": "6b1f6a0e-5d0c-4f3e-9a51-0c8f8a4f2f11",
    "room_id": "12",
    "arrival": "2026-12-01",
    "departure": "2026-12-03",
}
BAD: Final = {**GOOD, "arrival": "tomorrow"}
"""Breaks the contract in one place; a server that accepts it does not check its input."""

_reservations = itertools.count(1)


def next_reservation_id() -> str:
    """A well-formed UUID. `uuid4` alone would cost more than a whole request step, and the same on every server."""
    return f"00000000-0000-4000-8000-{next(_reservations):012x}"


async def book_room(guest_id: str, room_id: str, arrival: str, departure: str) -> dict[str, str]:
    """The handler: it makes the reservation id and nothing else, so that the servers are what is measured."""
    return {"reservation_id": next_reservation_id()}


def agtp_request(payload: object, method: str = METHOD, path: str = PATH, scope: str = SCOPE) -> bytes:
    """A call with the headers an agent sends."""
    body = json.dumps(payload, separators=(",", ":")).encode()
    head = (
        f"AGTP/1.0 {method} {path}\r\nAgent-ID: {'a1' * 32}\r\nAuthority-Scope: {scope}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def with_task_id(request: bytes, number: int) -> bytes:
    """The same request with a head like no other's, so that no server can have remembered it."""
    line, _, rest = request.partition(b"\r\n")
    return b"%b\r\nTask-ID: task-%012d\r\n%b" % (line, number, rest)


def http_request(payload: object, path: str = PATH, headers: str = "") -> bytes:
    """The same call as an HTTP POST."""
    body = json.dumps(payload, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: application/json, text/event-stream\r\n{headers}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def mcp_request(payload: object) -> bytes:
    """The same call as an MCP tool call of revision 2026-07-28, which needs no handshake."""
    revision = "2026-07-28"
    envelope = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "book_room", "arguments": payload, "_meta": envelope},
    }
    headers = f"MCP-Protocol-Version: {revision}\r\nMcp-Method: tools/call\r\nMcp-Name: book_room\r\n"
    return http_request(message, "/mcp", headers)


def path_of(number: int) -> str:
    """The path of one endpoint of many: every second one is a template."""
    return f"/hotels/h{number:05}/room" if number % 2 == 0 else f"/hotels/h{number:05}/rooms/{{room_id}}"


def request_of(number: int) -> bytes:
    """A call of that endpoint."""
    if number % 2 == 0:
        return agtp_request(GOOD, METHOD, path_of(number))
    rest = {name: value for name, value in GOOD.items() if name != "room_id"}
    return agtp_request(rest, METHOD, path_of(number).replace("{room_id}", GOOD["room_id"]))
