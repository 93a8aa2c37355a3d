"""The contract implemented on the low-level server of the MCP SDK. Usage: mcp_lowlevel_app.py PORT [TOOLS [sessions]]

It is stateless and sends JSON, as fast as the SDK can be. With `sessions` it keeps sessions and sends event streams:
only then are there progress, cancellation and questions to the user.
"""

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import jsonschema_rs
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_app import asked_tools, serve

from contract import INPUT_SCHEMA, OUTPUT_SCHEMA, book_room

TOOLS = {
    name: types.Tool(name=name, description="Reserve a room.", input_schema=INPUT_SCHEMA, output_schema=OUTPUT_SCHEMA)
    for name in asked_tools()
}
VALID_INPUT = jsonschema_rs.validator_for(INPUT_SCHEMA, validate_formats=True).is_valid
VALID_OUTPUT = jsonschema_rs.validator_for(OUTPUT_SCHEMA, validate_formats=True).is_valid


async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
    """List the tools."""
    return types.ListToolsResult(tools=list(TOOLS.values()))


async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Validate the arguments, book, and validate the output."""
    given = params.arguments or {}
    if params.name not in TOOLS or not VALID_INPUT(given):
        return types.CallToolResult(content=[types.TextContent(text="invalid arguments")], is_error=True)
    output = await book_room(**given)
    if not VALID_OUTPUT(output):
        return types.CallToolResult(content=[types.TextContent(text="invalid output")], is_error=True)
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(output))], structured_content=output)


def lookup(name: str) -> dict[str, Any] | None:
    """Return the input schema of a tool; without this function every call would list the tools."""
    return INPUT_SCHEMA if name in TOOLS else None


class Application:
    """The session manager as an ASGI application."""

    def __init__(self, *, sessions: bool) -> None:
        server: Server[Any] = Server(
            "Acme Rooms", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lookup
        )
        server.middleware.clear()  # without tracing, as in bespeak
        self._manager = StreamableHTTPSessionManager(server, stateless=not sessions, json_response=not sessions)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or follow the lifespan."""
        if scope["type"] == "http":
            await self._manager.asgi_app(scope, receive, send)
            return
        async with self._running(receive, send):
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    @contextlib.asynccontextmanager
    async def _running(self, receive: Any, send: Any) -> AsyncIterator[None]:
        await receive()
        async with self._manager.run():
            await send({"type": "lifespan.startup.complete"})
            yield


if __name__ == "__main__":
    serve(Application(sessions="sessions" in sys.argv))
