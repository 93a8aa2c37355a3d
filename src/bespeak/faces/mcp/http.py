"""MCP over streamable HTTP, as an ASGI application: guards, credentials and scopes before the SDK's transport."""

from __future__ import annotations

import asyncio
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.dispatched import PRINCIPAL, DispatchBackend, judge
from bespeak.faces.http.face import connection_of
from bespeak.faces.http.guard import METADATA, Guard, replayed
from bespeak.faces.http.reader import HttpHead
from bespeak.faces.http.server import PROMPTED
from bespeak.faces.http.translation import read_headers
from bespeak.faces.mcp.lane import FastLane
from bespeak.faces.mcp.server import ToolServer
from bespeak.faces.mcp.sessions import ClientMessage, InvalidMessage, McpSessions, read_message
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, may_discover

_INTERVAL: Final = 1.0  # seconds between looks for new endpoints, which other processes may have added to the store
_NOTHING: Final = ClientMessage("2.0")  # a request without a body: not a POST, or for the SDK to refuse


class McpApplication:
    def __init__(self, tools: ToolServer, backend: DispatchBackend, guard: Guard, *, stateless: bool = False) -> None:
        """Create the application; `stateless` keeps no sessions, for servers of several processes."""
        self.tools = tools
        self._backend = backend
        self._guard = guard
        tools.server.announces = not stateless
        self._manager = StreamableHTTPSessionManager(
            tools.server, stateless=stateless, max_request_body_size=guard.limits.body
        )
        self._sessions = McpSessions(self._manager, tools.audience.forget)
        self._lane = FastLane(tools, backend, guard, None if stateless else self._sessions)
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Keep sessions and announce changed tools, in a task of its own: the SDK wants both ends in one task."""
        await self.tools.refresh()  # the instructions name what there is
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(started))
        await started

    async def stop(self) -> None:
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def _run(self, started: asyncio.Future[None]) -> None:
        async with self._manager.run():
            watching = asyncio.create_task(self.tools.watch(_INTERVAL))
            started.set_result(None)
            await self._stopping.wait()
            watching.cancel()

    def answer(self, head: HttpHead, body: bytes, peer: Connection) -> HttpResponse | Application | None:
        """Answer a plain request without the SDK; return None for any other one."""
        if head.http_method != "POST" or head.path.startswith(METADATA) or isinstance(head.headers, Malformed):
            return None
        return self._lane.take(head.pairs, head.headers, body, peer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = await self._guard.admit(scope, receive)
        if isinstance(admitted, HttpResponse):
            await send_response(admitted, scope["method"], send)
            return
        scope, body = admitted
        asked = read_message(body) if body else _NOTHING
        answer: HttpResponse | Application | None = None
        if scope["method"] == "POST" and not scope.get("state", {}).get(PROMPTED):
            headers = read_headers(scope["headers"], self._guard.limits.headers)
            assert not isinstance(headers, Malformed), "the guard has read them"
            answer = self._lane.take(scope["headers"], headers, body, connection_of(scope))
        answer = answer or await self._admit(scope, asked)
        if isinstance(answer, HttpResponse):
            await send_response(answer, scope["method"], send)
        elif answer is not None:
            await answer(scope, receive, send)
        else:
            assert isinstance(asked, ClientMessage), "others are refused"
            await self._sessions.handle(scope, asked, replayed(body, receive), send)

    async def _admit(self, scope: Scope, asked: ClientMessage | InvalidMessage) -> HttpResponse | None:
        """Judge credentials and scopes; return the refusal. The SDK refuses a message that contradicts its headers."""
        params = asked.params if isinstance(asked, ClientMessage) and asked.method == "tools/call" else None
        call = await self._backend.admit(scope, calls=params is not None)
        # A caller that may not discover gets one answer, for which no name is looked up and every request counts.
        stranger = isinstance(call, Call) and not may_discover(call)
        tool = None
        if params is not None and not stranger and (isinstance(call, Call) or self._backend.is_public):
            tool = await self.tools.find_called(params.name, bytes(params.arguments))
        required = () if tool is None else tool.endpoint.required_scopes
        if isinstance(call, Call) and params is not None and tool is None:
            call = self._backend.count(call) or call
        if isinstance(call, Refused):
            return self._guard.refuse(asked.id, call, required)
        if isinstance(asked, InvalidMessage):
            return HttpResponse(status.BAD_REQUEST, [(b"content-type", b"application/json")], asked.encode())
        found = judge(call, None if tool is None else tool.endpoint)
        if found is not None and (tool is None or self._guard.challenges):
            return self._guard.refuse(asked.id, found, (*call.principal.scopes, *required))
        principal: Principal = scope[PRINCIPAL]
        if principal.agent_id is not None:
            # The SDK then binds the sessions of earlier revisions to the agent.
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.agent_id, scopes=[]))
        return None
