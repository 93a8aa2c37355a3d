"""MCP servers for the tests of the binding: a process that misbehaves, and one on the web."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

from bespeak.contract.handler import McpServer
from bespeak.runtime.bindings.mcp.process import Launch, resolve_server


class Sure(BaseModel):
    sure: bool


SCRIPT = Path(__file__).parents[3] / "crooked_mcp.py"


def crooked(*arguments: str, tool: str = "add", **more: Any) -> McpServer:
    """Return the server that misbehaves."""
    return McpServer(tool=tool, command=sys.executable, args=("-S", str(SCRIPT), *arguments), **more)


def launched(server: McpServer, environment: dict[str, str] | None = None) -> Launch:
    launch = resolve_server(server, {"PATH": "/usr/bin:/bin", **(environment or {})})
    assert isinstance(launch, Launch)
    return launch


def is_running(pid: int) -> bool:
    """Return True for a process that exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@asynccontextmanager
async def on_the_web(token: str = "") -> AsyncIterator[str]:
    """Serve two tools with the SDK over streamable HTTP; yield the address."""
    server = MCPServer("webbed", version="3")

    @server.tool()
    def multiply(a: int, b: int) -> dict[str, int]:
        """Calculate the product of two numbers."""
        return {"product": a * b}

    @server.tool()
    def flood() -> str:
        """Get much."""
        return "x" * 9_000_000

    def question() -> Elicit[Sure]:
        return Elicit("Sure?", Sure)

    @server.tool()
    async def ask(sure: Annotated[Sure, Resolve(question)]) -> str:
        """Ask the user."""
        return str(sure)

    inner = server.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers") or ()).get(b"authorization", b"").decode()
        if scope["type"] == "http" and token and given != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"Who are you?"})
            return
        await inner(scope, receive, send)

    async with serving_app(app) as url:
        yield url


@asynccontextmanager
async def serving_app(app: Any) -> AsyncIterator[str]:
    """Serve an application on loopback; yield the address of MCP."""
    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(running.serve([listener]))
    try:
        while not running.started:
            await asyncio.sleep(0)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await serving
        listener.close()
