"""The contract implemented as a tool of the official MCP SDK: stateless HTTP, JSON replies. Usage: mcp_app.py PORT"""

import logging
import sys
from datetime import date
from typing import Annotated, TypedDict
from uuid import UUID

import uvicorn
from mcp.server.mcpserver import MCPServer
from pydantic import Field

from contract import book_room

server = MCPServer("Acme Rooms", log_level="WARNING")


class Reservation(TypedDict):
    """The output."""

    reservation_id: UUID


@server.tool(name="book_room")
async def book(
    guest_id: UUID,
    room_id: Annotated[str, Field(min_length=1, max_length=64)],
    arrival: date,
    departure: date,
) -> Reservation:
    """Reserve a room."""
    return await book_room(guest_id, room_id, arrival, departure)  # type: ignore[arg-type, return-value]


if __name__ == "__main__":
    # the SDK logs a line for each refused call; the others are silent too
    logging.disable(logging.WARNING)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
