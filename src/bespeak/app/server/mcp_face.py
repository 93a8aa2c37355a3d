"""Construction of the MCP face: its tools, credentials and places on the HTTP face."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from bespeak.app.server.http_face import ACCEPT, CORS, extra_needed, make_guard, mount
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.documents.projections.discovery import MCP_INTERFACE
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.guard import METADATA
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings

if TYPE_CHECKING:
    from bespeak.faces.mcp.http import McpApplication

_CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("GET", "POST", "DELETE"),
    "allow_headers": (
        *CORS["allow_headers"],
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
    ),
    "expose_headers": ("Mcp-Session-Id", "WWW-Authenticate"),
}


def sdk_needed() -> AbstractContextManager[None]:
    """Raise ConfigError with install advice if an import of the extra fails inside the block."""
    return extra_needed("MCP", "mcp", "mcp", "mcp_types")


def make_mcp(
    dispatcher: Dispatcher,
    web: HttpSettings,
    auth: AuthSettings,
    settings: McpSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
    stateless: bool = False,
) -> McpApplication:
    """Build the application at `/mcp`; `loopback` is True if the server listens on loopback only."""
    with sdk_needed():
        from bespeak.faces.asking import Asking  # noqa: PLC0415 - slow to load
        from bespeak.faces.http.dispatched import DispatchBackend  # noqa: PLC0415
        from bespeak.faces.mcp.http import McpApplication  # noqa: PLC0415
        from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415
    server = dispatcher.server
    assert server.store is not None, "a server that is reached has a store"
    backend = DispatchBackend(dispatcher, server, "mcp")
    guard = make_guard(MCP_INTERFACE, dispatcher, web, auth, limits=limits, loopback=loopback)
    tools = ToolServer(backend, Asking(server.store, server.cases, ACCEPT), settings, keeps=not stateless)
    return McpApplication(tools, backend, guard, stateless=stateless)


def mounted(mcp: McpApplication, web: HttpSettings) -> dict[str, Application]:
    """Return the applications of MCP by path.

    The metadata is at the root, too: clients of MCP look there last.
    """
    places = mount(MCP_INTERFACE, mcp, web, _CORS)
    return {**places, METADATA: places[f"{METADATA}{MCP_INTERFACE}"]}
