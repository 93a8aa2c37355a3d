"""The contract that every benchmarked server implements: BOOK /room of AGTP-API 6.1, with one input schema, one
output schema and one handler.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

METHOD: Final = "BOOK"
PATH: Final = "/room"
THREADED: Final = "/hall"
"""The same endpoint with a `def` handler, which runs in a thread."""
SCOPE: Final = "booking:room"
AUTHORITY: Final = f"Agent-ID: {'a1' * 32}\r\nAuthority-Scope: {SCOPE}\r\n"
"""Headers of the caller over HTTP."""

TOOL: Final = "book_room"
MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"

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
"""A body with one invalid value; a server that accepts it does not validate its input."""

_reservations = itertools.count(1)


def next_reservation_id() -> str:
    """Return a well-formed UUID. `uuid4` would cost more than a whole request step, and the same on every server."""
    return f"00000000-0000-4000-8000-{next(_reservations):012x}"


async def book_room(guest_id: str, room_id: str, arrival: str, departure: str) -> dict[str, str]:
    """Handle a booking. It only makes the reservation id, so the benchmark measures the servers."""
    return {"reservation_id": next_reservation_id()}


def book_hall(guest_id: str, room_id: str, arrival: str, departure: str) -> dict[str, str]:
    """Handle a booking in a thread."""
    return {"reservation_id": next_reservation_id()}


def agtp_request(payload: object, method: str = METHOD, path: str = PATH, scope: str = SCOPE) -> bytes:
    """Build an AGTP request with the headers an agent sends."""
    body = json.dumps(payload, separators=(",", ":")).encode()
    head = (
        f"AGTP/1.0 {method} {path}\r\nAgent-ID: {'a1' * 32}\r\nAuthority-Scope: {scope}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def with_task_id(request: bytes, number: int) -> bytes:
    """Return the request with a unique Task-ID, so that no server can use a cached head."""
    line, _, rest = request.partition(b"\r\n")
    return b"%b\r\nTask-ID: task-%012d\r\n%b" % (line, number, rest)


def with_request_id(request: bytes, number: int) -> bytes:
    """Return the request as common clients send it: with the Host and a new Request-ID."""
    line, _, rest = request.partition(b"\r\n")
    host = b"Host: 127.0.0.1:4480"
    return b"%b\r\n%b\r\nRequest-ID: 6b1f6a0e-5d0c-4f3e-9a51-%012x\r\n%b" % (line, host, number, rest)


def http_request(payload: object, path: str = PATH, headers: str = "") -> bytes:
    """Build the same request as an HTTP POST."""
    body = json.dumps(payload, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAccept: application/json, text/event-stream\r\n{headers}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def mcp_request(payload: object, **meta: object) -> bytes:
    """Build the same request as an MCP tool call of revision 2026-07-28, which needs no handshake."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    params = {"name": TOOL, "arguments": payload, "_meta": envelope}
    return mcp_message(
        "tools/call", params, f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {TOOL}\r\n"
    )


def legacy_request(payload: object, session: str | None = None) -> bytes:
    """Build the same request for a server of revision 2025-11-25, in a session if it keeps them."""
    return mcp_message("tools/call", {"name": TOOL, "arguments": payload}, legacy_headers(session))


def legacy_headers(session: str | None = None) -> str:
    """Return the headers of a request of revision 2025-11-25."""
    return f"MCP-Protocol-Version: {LEGACY}\r\n" + (f"Mcp-Session-Id: {session}\r\n" if session else "")


def mcp_message(method: str, params: object, headers: str, *, notifies: bool = False) -> bytes:
    """Build a message as the SDK's client sends it, with the authority that bespeak requires."""
    message = {"jsonrpc": "2.0", **({} if notifies else {"id": 1}), "method": method, "params": params}
    return http_request(message, "/mcp", f"{AUTHORITY}User-Agent: bench\r\nConnection: keep-alive\r\n{headers}")


def tool_names(count: int) -> list[str]:
    """Return the names of the tools of a server; all of them do the same."""
    return [TOOL, *(f"{TOOL}_{number}" for number in range(1, count))]


def path_of(number: int) -> str:
    """Return the path of endpoint `number`: every second one is a template."""
    return f"/hotels/h{number:05}/room" if number % 2 == 0 else f"/hotels/h{number:05}/rooms/{{room_id}}"


def request_of(number: int) -> bytes:
    """Build a request for endpoint `number`."""
    if number % 2 == 0:
        return agtp_request(GOOD, METHOD, path_of(number))
    rest = {name: value for name, value in GOOD.items() if name != "room_id"}
    return agtp_request(rest, METHOD, path_of(number).replace("{room_id}", GOOD["room_id"]))
