"""MCP over streamable HTTP, as an ASGI application: guards, credentials and scopes before the SDK's transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope, Send, send_response
from bespeak.faces.http.face import refusal
from bespeak.faces.http.origin import Origins
from bespeak.faces.http.page import Page
from bespeak.faces.http.problem import condition_of
from bespeak.faces.http.translation import read_headers
from bespeak.faces.mcp.dispatched import PRINCIPAL, DispatchBackend, judge
from bespeak.faces.mcp.server import ToolServer
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits

PATH: Final = "/mcp"
METADATA: Final = "/.well-known/oauth-protected-resource"
"""Path of protected-resource metadata, before the path of the resource (RFC 9728 3.1)."""
_REFUSED: Final = -32000
"""JSON-RPC code of a refusal by this application."""
_INTERVAL: Final = 1.0
"""Seconds between looks for new endpoints, which other processes may have added to the store."""


class _Params(msgspec.Struct):
    name: str = ""


class _Asked(msgspec.Struct):
    """What has to be known of a message before it is handed over."""

    method: str = ""
    id: Any = None
    params: _Params | None = None


_read = msgspec.json.Decoder(_Asked).decode


class McpApplication:
    """Serves the tools of a dispatcher at one path."""

    def __init__(
        self,
        tools: ToolServer,
        backend: DispatchBackend,
        *,
        origins: Origins,
        limits: Limits = DEFAULT_LIMITS,
        metadata: Page | None = None,
        metadata_url: str = "",
        stateless: bool = False,
    ) -> None:
        """Create the application.

        `metadata` is the protected-resource metadata of a server that takes bearer tokens; without it, missing
        authority is reported in results alone. `stateless` keeps no sessions, for servers of several processes.
        """
        self._tools = tools
        self._backend = backend
        self._origins = origins
        self._limits = limits
        self._metadata = metadata
        self._challenge = f'Bearer resource_metadata="{metadata_url}"'
        self._stateless = stateless
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Keep sessions and announce changed tools, in a task of its own: the SDK wants both ends in one task."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(started))
        await started

    async def stop(self) -> None:
        """End all sessions."""
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def _run(self, started: asyncio.Future[None]) -> None:
        self._manager = StreamableHTTPSessionManager(
            self._tools.server, stateless=self._stateless, max_request_body_size=self._limits.body
        )
        async with self._manager.run():
            watching = asyncio.create_task(self._tools.watch(_INTERVAL))
            started.set_result(None)
            await self._stopping.wait()
            watching.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = read_headers(scope["headers"], self._limits.headers)
        if isinstance(headers, Malformed):
            await send_response(refusal(headers.status, headers.code, headers.message), scope["method"], send)
            return
        forbidden = self._origins.check_host(headers) or self._origins.check_origin(headers)
        if forbidden is not None:
            await send_response(refusal(*forbidden), scope["method"], send)
            return
        if scope["path"].startswith(METADATA):
            await send_response(self._describe(scope["method"], headers), scope["method"], send)
            return
        body = await self._body(receive) if scope["method"] == "POST" else b""
        if body is None:
            message = f"The body is larger than {self._limits.body} bytes, or incomplete."
            reply = refusal(status.CONTENT_TOO_LARGE, "content-too-large", message)
            await send_response(reply, scope["method"], send)
            return
        # httptools leaves blanks at the end of values, and the SDK compares them as they are.
        scope = {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}
        refused = await self._admit(scope, body)
        if refused is not None:
            await send_response(refused, scope["method"], send)
            return
        assert self._manager is not None, "the application is running"
        await self._manager.handle_request(scope, _replayed(body, receive), send)

    def _describe(self, http_method: str, headers: Mapping[str, str]) -> HttpResponse:
        if self._metadata is None or http_method not in ("GET", "HEAD"):
            return refusal(status.NOT_FOUND, "endpoint-not-found", "This server takes no bearer tokens for MCP.")
        return self._metadata.answer(headers)

    async def _body(self, receive: Receive) -> bytes | None:
        """Read the body; return None if it is too large or incomplete."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            part: bytes = message.get("body", b"")
            size += len(part)
            if message["type"] != "http.request" or size > self._limits.body:
                return None
            parts.append(part)
            if not message.get("more_body"):
                return b"".join(parts)

    async def _admit(self, scope: Scope, body: bytes) -> HttpResponse | None:
        """Judge credentials and scopes; return the reply to a request that is refused.

        The SDK refuses a message that says other than its headers, and a body that cannot be read here.
        """
        try:
            asked = _read(body) if body else _Asked()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            asked = _Asked()
        name = asked.params.name if asked.method == "tools/call" and asked.params is not None else None
        tool = None if name is None else await self._tools.find(name)
        call = await self._backend.admit(scope, calls=tool is not None)
        if isinstance(call, Refused):
            return self._refuse(asked, call, ())
        found = judge(call, None if tool is None else tool.endpoint)
        if found is not None and (tool is None or self._metadata is not None):
            required = () if tool is None else tool.endpoint.required_scopes
            return self._refuse(asked, found, (*call.principal.scopes, *required))
        principal: Principal = scope[PRINCIPAL]
        if principal.agent_id is not None:
            # The SDK then binds the sessions of earlier revisions to the agent.
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.agent_id, scopes=[]))
        return None

    def _refuse(self, asked: _Asked, refused: Refused, scopes: tuple[str, ...]) -> HttpResponse:
        """Refuse as OAuth clients expect it, with words for the others."""
        number = status.to_http(refused.status, condition_of(refused.details))
        data = {"code": refused.code, **refused.details}
        error = {"code": _REFUSED, "message": refused.message, "data": data}
        answered = asked.id if isinstance(asked.id, str | int) and not isinstance(asked.id, bool) else None
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": answered, "error": error})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers]
        if self._metadata is not None and number in (status.UNAUTHORIZED, status.FORBIDDEN):
            challenge = self._challenge
            if scopes:
                wanted = " ".join(dict.fromkeys(scopes))
                words = "".join(char for char in refused.message if char.isascii() and char not in '"\\')
                challenge += f', error="insufficient_scope", error_description="{words}", scope="{wanted}"'
            headers.append((b"www-authenticate", challenge.encode()))
        return HttpResponse(number, headers, body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that begins with a body that was read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
