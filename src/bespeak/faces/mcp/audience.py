"""The clients that are told when lists change: streams of the modern era, sessions of earlier revisions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

MOST_SESSIONS: Final = 1_000
"""Sessions that are told; those that were silent for longest are forgotten first."""
_PATIENCE: Final = 5.0
"""Seconds for a client to take a notification."""


class Audience:
    """Tells clients of changes. No request waits for a client that does not read."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: dict[str | None, ServerSession] = {}
        """Latest session of each connection of the handshake era, by its id; None is that of stdio."""
        self._telling: set[asyncio.Task[None]] = set()

    def meet(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember the connection of a client of the handshake era."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            key = getattr(context.request, "headers", {}).get("mcp-session-id")
            self._sessions.pop(key, None)
            self._sessions[key] = context.session
            if len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]

    def forget(self, session_id: str) -> None:
        """Forget a connection that has ended."""
        self._sessions.pop(session_id, None)

    async def announce(self, uris: Iterable[str], *, tools: bool = True) -> None:
        """Tell all clients that the endpoints have changed, and the resources at `uris`.

        `tools` is False if the list of tools is a search, which is the same.
        """
        events: list[ServerEvent] = [ToolsListChanged()] if tools else []
        for event in (*events, PromptsListChanged(), ResourcesListChanged(), *map(ResourceUpdated, uris)):
            await self.bus.publish(event)
        for key, session in self._sessions.items():
            task = asyncio.create_task(self._tell(key, session, tools=tools))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, key: str | None, session: ServerSession, *, tools: bool) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                if tools:
                    await session.send_tool_list_changed()
                await session.send_prompt_list_changed()
                await session.send_resource_list_changed()
        except Exception:  # noqa: BLE001 - the client is gone or does not read
            if self._sessions.get(key) is session:
                del self._sessions[key]
