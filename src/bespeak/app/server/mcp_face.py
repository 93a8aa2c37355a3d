"""Construction of the MCP face: its tools, credentials and places on the HTTP face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.app.server.http_face import CORS, build_middleware
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.origin import Origins
from bespeak.faces.http.page import Page
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
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
_ACCEPT: Final = "bespeak cases accept {case} TARGET"
"""Command for operators. Callers do not learn where the deployment is."""


@contextmanager
def sdk_needed() -> Iterator[None]:
    """Raise ConfigError with install advice if an import of the extra fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise ConfigError("MCP needs the official SDK: pip install 'bespeak[mcp]'") from error


def make_mcp(
    dispatcher: Dispatcher,
    web: HttpSettings,
    auth: AuthSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
    stateless: bool = False,
) -> McpApplication:
    """Build the application at `/mcp`; `loopback` is True if the server listens on loopback only."""
    with sdk_needed():
        from bespeak.faces.mcp.asking import Asking  # noqa: PLC0415 - slow to load
        from bespeak.faces.mcp.dispatched import DispatchBackend  # noqa: PLC0415
        from bespeak.faces.mcp.http import METADATA, PATH, McpApplication  # noqa: PLC0415
        from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415
    server = dispatcher.server
    assert server.store is not None, "a server that is reached has a store"
    backend = DispatchBackend(dispatcher, server)
    url = web.url or ""
    takes_tokens = "token" in auth.modes
    return McpApplication(
        ToolServer(backend, Asking(server.store, server.cases, _ACCEPT)),
        backend,
        origins=Origins(url=web.url, allowed=web.cors, loopback=loopback),
        limits=limits,
        metadata=Page(lambda: _metadata(dispatcher, f"{url}{PATH}", auth), MEDIA_JSON) if takes_tokens else None,
        metadata_url=f"{url.removesuffix(web.prefix)}{METADATA}{web.prefix}{PATH}",
        stateless=stateless,
    )


def mounted(mcp: McpApplication, web: HttpSettings) -> dict[str, Application]:
    """Return the applications of MCP by path. A proxy may have removed the prefix of the public URL."""
    from bespeak.faces.mcp.http import METADATA, PATH  # noqa: PLC0415 - slow to load

    application = build_middleware(mcp, web, _CORS) or mcp
    return {f"{place}{prefix}{PATH}": application for place in ("", METADATA) for prefix in ("", web.prefix)}


def _metadata(dispatcher: Dispatcher, resource: str, auth: AuthSettings) -> bytes:
    """Write the protected-resource metadata (RFC 9728 2)."""
    routes = dispatcher.server.routes
    listed = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
    issuer = auth.token.issuer or ""
    document: dict[str, Any] = {
        "resource": resource,
        "resource_name": routes.service.identity.name or routes.service.identity.server_id,
        "scopes_supported": sorted({scope for endpoint in listed for scope in endpoint.required_scopes}),
        "bearer_methods_supported": ["header"],
    }
    if issuer.startswith("https://"):
        document["authorization_servers"] = [issuer]
    return msgspec.json.encode(document)
