"""The contract implemented as tools of the official MCP SDK: stateless HTTP, JSON replies. Usage: mcp_app.py PORT
[TOOLS]
"""

import logging
import sys
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import uvicorn
from mcp.server.mcpserver import MCPServer
from pydantic import Field
from typing_extensions import TypedDict  # pydantic demands it before Python 3.12

from contract import book_room, tool_names


class Reservation(TypedDict):
    """The output."""

    reservation_id: UUID


async def book(
    guest_id: UUID,
    room_id: Annotated[str, Field(min_length=1, max_length=64)],
    arrival: date,
    departure: date,
) -> Reservation:
    """Reserve a room."""
    return await book_room(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]


def asked_tools() -> list[str]:
    """Return the names of the tools to serve."""
    return tool_names(int(sys.argv[2]) if len(sys.argv) > 2 else 1)


def serve(app: Any) -> None:
    """Serve an application on uvicorn, as fast as it can."""
    # the SDK logs a line for each refused call; the others are silent too
    logging.disable(logging.WARNING)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )


if __name__ == "__main__":
    server = MCPServer("Acme Rooms", log_level="WARNING")
    for name in asked_tools():
        server.tool(name=name)(book)
    serve(server.streamable_http_app(json_response=True, stateless_http=True))
