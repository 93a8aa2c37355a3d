"""An agent of the A2A SDK on a real port, which publishes nothing but its card."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import new_data_part, new_text_part, new_url_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Message, Task, TaskState, TaskStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SKILLS: list[dict[str, Any]] = [
    {
        "id": "plan_route",
        "name": "Plan a route",
        "description": "Plans a route between two cities.",
        "tags": ["maps"],
        "examples": ["How do I get from Basel to Bern?"],
    },
    {"id": "book_taxi", "name": "Book a taxi", "description": "Books a taxi.", "tags": ["rides"]},
]


@dataclass
class Carrier(AgentExecutor):
    """Does what the first word of a message says."""

    messages: list[Message] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to let tasks end whose message begins with `slowly`."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.messages.append(context.message)
        task_id, context_id = context.task_id or "", context.context_id or ""
        updater = TaskUpdater(event_queue, task_id, context_id)
        said = context.get_user_input()
        if said.startswith("hello"):
            await event_queue.enqueue_event(updater.new_agent_message([new_text_part("hello yourself")]))
            return
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status))
        await updater.start_work()
        told = updater.new_agent_message([new_text_part(f"I cannot {said}.")])
        match said.partition(" ")[0]:
            case "fail":
                await updater.failed(told)
            case "reject":
                await updater.reject(told)
            case "ask":
                await updater.requires_input(told)
            case "authorise":
                await updater.requires_auth(told)
            case first:
                if first == "slowly":
                    await self.released.wait()
                parts = [
                    new_text_part("via Olten"),
                    new_data_part({"minutes": 57}),
                    new_url_part("https://x.example/m"),
                ]
                await updater.add_artifact(parts)
                await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


@asynccontextmanager
async def on_the_web(version: str = "1.0", token: str = "", **members: Any) -> AsyncIterator[tuple[str, Carrier]]:
    """Serve an agent; yield its address and what it does. `members` are further ones of its card."""
    carrier = Carrier()
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    legacy = {"protocolVersion": "0.3.0", "url": f"{url}/rpc", "preferredTransport": "JSONRPC"}
    interface = {"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    form: dict[str, Any] = {"supportedInterfaces": [interface]} if version == "1.0" else legacy
    shown = {"name": "Carrier", "description": "Gets people around.", "version": "1", "skills": SKILLS}
    own = AgentCard(
        name="Carrier",
        version="1",
        capabilities=AgentCapabilities(),
        supported_interfaces=[AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version=version)],
    )
    handler = DefaultRequestHandler(carrier, InMemoryTaskStore(), own)

    async def card(request: Request) -> Response:
        return JSONResponse({**shown, **form, **members})

    inner = Starlette(
        routes=[
            Route("/.well-known/agent-card.json", card),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=version != "1.0"),
        ]
    )

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers") or ()}
        if scope.get("path") == "/rpc":
            carrier.headers.append(headers)
            if token and headers.get("authorization") != f"Bearer {token}":
                await JSONResponse({}, 401)(scope, receive, send)
                return
        await inner(scope, receive, send)

    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(running.serve([listener]))
    try:
        while not running.started:
            await asyncio.sleep(0)
        yield url, carrier
    finally:
        carrier.released.set()
        running.should_exit = True
        await serving
        listener.close()
