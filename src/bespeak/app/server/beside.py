"""The applications beside the HTTP face, which start and stop with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.faces.http.asgi import Application
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings


class _Startable(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Beside:
    """The chosen applications."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        web: HttpSettings,
        auth: AuthSettings,
        *,
        mcp: McpSettings,
        a2a: A2aSettings,
        limits: Limits = DEFAULT_LIMITS,
        loopback: bool = False,
        stateless: bool = False,
    ) -> None:
        """Build them. `loopback` is True if the server listens on loopback only, `stateless` if it has several
        processes, so that no session can be kept in one.
        """
        self._parts: list[_Startable] = []
        self._places: dict[str, Application] = {}
        if mcp.enabled:
            from bespeak.app.server import mcp_face  # noqa: PLC0415 - only for MCP

            tools = mcp_face.make_mcp(dispatcher, web, auth, mcp, limits=limits, loopback=loopback, stateless=stateless)
            self._parts.append(tools)
            self._places |= mcp_face.mounted(tools, web)
        if a2a.enabled:
            from bespeak.app.server import a2a_face  # noqa: PLC0415 - only for A2A

            skills = a2a_face.make_a2a(dispatcher, web, auth, a2a, limits=limits, loopback=loopback)
            self._parts.append(skills)
            self._places |= a2a_face.mounted(skills, web)

    @property
    def places(self) -> Mapping[str, Application] | None:
        """The applications by path; None if there are none."""
        return self._places or None

    async def start(self) -> None:
        """Start all of them; the store must be started."""
        for part in self._parts:
            await part.start()

    async def stop(self) -> None:
        """Stop all of them, before the store is closed."""
        for part in self._parts:
            await part.stop()
