"""A service as an A2A agent on a real port, and the SDK's client for it."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_data_parts, new_data_part
from a2a.types import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, Task
from tests.faces.mcp.tools import Rooms, Survey
from tests.service import AGENT

from bespeak.app.server.assembly import Keeper
from bespeak.app.server.http_face import make_face
from bespeak.app.server.http_pages import Publishing
from bespeak.app.server.serving import WebApplications, assemble_target
from bespeak.app.server.settings import HttpAssembly
from bespeak.app.server.target import load_app
from bespeak.contract.limits import RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.http.server import HttpServer
from bespeak.faces.limits import Timeouts
from bespeak.state.store.settings import MEMORY, open_store
from bespeak.state.store.store import Store

VERSIONS = ("1.0", "0.3")
READER = {"Agent-ID": AGENT, "Authority-Scope": "rooms:read"}
WRITER = {"Agent-ID": AGENT, "Authority-Scope": "rooms:read, rooms:write"}
OTHER = {"Agent-ID": "b" * 64, "Authority-Scope": "rooms:read, rooms:write"}
FIND, BOOK, RESET, WATCH = "query_rooms", "book_rooms_by_room_id", "reset_rooms", "watch_rooms"


@asynccontextmanager
async def on_http(
    rooms: Rooms | Survey,
    document: ServerDocument | None = None,
    *,
    store: Store | None = None,
    rates: RateLimits | None = None,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    **settings: Any,
) -> AsyncIterator[tuple[str, Keeper]]:
    """Serve the skills on a real port; yield the URL of the service. `settings` are those of `[a2a]`."""
    document = document or ServerDocument()
    target = load_app(rooms.app, Path())
    if rates is not None:
        target = replace(target, service=replace(target.service, rate_limits=rates))
    keeper = Keeper(assemble_target(target, "2026-11-16T00:00:00Z"), store or open_store(MEMORY, role="sole"), document)
    await keeper.start()
    chosen = A2aSettings(enabled=True, **settings)
    publishing = Publishing(auth=document.auth, a2a=chosen)
    # The card contains the URL, and the port is only known when the server has started.
    web = HttpSettings(url=document.http.url or "http://placeholder.example")
    beside = WebApplications(HttpAssembly(keeper.dispatcher, web, document.auth, loopback=True), document.mcp, chosen)
    await beside.start()
    face = make_face(keeper.dispatcher, web, publishing=publishing)
    server = HttpServer(face, streamed=beside.places, timeouts=Timeouts(drain=5.0))
    [(_, port)] = await server.start("127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'http' if tls is None else 'https'}://{host}:{port}", keeper
    finally:
        await server.drain()
        await beside.stop()
        await keeper.stop()


@asynccontextmanager
async def connected(
    url: str,
    version: str = "1.0",
    *,
    streaming: bool = False,
    verify: Any = True,
    headers: dict[str, str] | None = None,
) -> AsyncIterator[Client]:
    """Connect the SDK's client by the card of an agent."""
    async with httpx.AsyncClient(headers=headers or WRITER, timeout=30, trust_env=False, verify=verify) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        chosen = [each for each in card.supported_interfaces if each.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(chosen)
        card.supported_interfaces[0].url = f"{url}/a2a"
        yield ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


def message(*parts: Part | dict[str, Any] | str, **fields: Any) -> Message:
    """Make a message of data parts and texts."""
    made = [
        new_data_part(part) if isinstance(part, dict) else Part(text=part) if isinstance(part, str) else part
        for part in parts
    ]
    return Message(**{"message_id": str(uuid.uuid4()), "role": Role.ROLE_USER, "parts": made, **fields})


def calling(skill: str, fields: dict[str, Any] | None = None, **arguments: Any) -> Message:
    """Make a message that calls a skill; `fields` are those of the message."""
    return message({"skill": skill, "input": arguments}, **(fields or {}))


async def events(client: Client, sent: Message, **configuration: Any) -> list[Any]:
    """Send a message; return what comes back: tasks, messages and updates."""
    request = SendMessageRequest(message=sent, configuration=SendMessageConfiguration(**configuration))
    found = []
    async for event in client.send_message(request):
        kind = event.WhichOneof("payload")
        found.append(getattr(event, kind))
    return found


async def send(client: Client, sent: Message, **configuration: Any) -> Task:
    """Send a message that has one task as its answer."""
    (task,) = await events(client, sent, **configuration)
    assert isinstance(task, Task), task
    return task


async def post(url: str, method: str, headers: dict[str, str] | None = None, **params: Any) -> httpx.Response:
    """Send one request of version 1.0, written by hand."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return await client.post(f"{url}/a2a", json=body, headers={"A2A-Version": "1.0", **(headers or {})})


def state(task: Task) -> str:
    """Return the name of a task's state, in short."""
    from a2a.types import TaskState

    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def output(task: Task) -> Any:
    """Return the output of a task."""
    (artifact,) = task.artifacts
    (data,) = get_data_parts(artifact.parts)
    return data


def words(task: Task) -> str:
    """Return the words of a task's status."""
    return task.status.message.parts[0].text


def error(task: Task) -> dict[str, Any]:
    """Return the error of a task's status."""
    (data,) = get_data_parts(task.status.message.parts)
    found: dict[str, Any] = data["error"]
    return found
