"""Applications beside the HTTP face: their guards, their places, and what clients are told about tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.app.server.http_face import build_middleware
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.guard import METADATA, Guard
from bespeak.faces.http.origin import Origins
from bespeak.faces.http.page import Page
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.identity.settings import AuthSettings

ACCEPT: Final = "bespeak cases accept {case} TARGET"
"""Command with which operators accept a case. Callers do not learn where the deployment is."""


def make_guard(
    path: str,
    dispatcher: Dispatcher,
    web: HttpSettings,
    auth: AuthSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
) -> Guard:
    """Build the guard of the application at `path`; `loopback` is True if the server listens on loopback only."""
    takes_tokens = "token" in auth.modes
    resource = None if web.url is None else f"{web.url}{path}"
    metadata = None
    if takes_tokens and resource is not None:
        # Clients ask the issuer for a token for this resource (RFC 8707), so its audience may be the URL.
        authenticator = dispatcher.server.principals.authenticator
        if authenticator is not None:
            authenticator.admit_audience(resource)
        if (auth.token.issuer or "").startswith("https://"):
            metadata = Page(lambda: _metadata(dispatcher, resource, auth), MEDIA_JSON)
    return Guard(
        origins=Origins(url=web.url, allowed=web.cors, loopback=loopback),
        limits=limits,
        realm=dispatcher.server.routes.service.identity.server_id if takes_tokens else None,
        metadata=metadata,
        metadata_url=f"{(web.url or '').removesuffix(web.prefix)}{METADATA}{web.prefix}{path}",
    )


def mount(path: str, app: Application, web: HttpSettings, cors: Mapping[str, Any]) -> dict[str, Application]:
    """Return an application by its paths. A proxy may have removed the prefix of the public URL."""
    application = build_middleware(app, web, cors) or app
    return {f"{place}{prefix}{path}": application for place in ("", METADATA) for prefix in ("", web.prefix)}


def _metadata(dispatcher: Dispatcher, resource: str, auth: AuthSettings) -> bytes:
    """Write the protected-resource metadata (RFC 9728 2). Strangers may not learn scopes if they may not discover."""
    routes = dispatcher.server.routes
    document: dict[str, Any] = {"resource": resource, "authorization_servers": [auth.token.issuer]}
    if routes.policies.anonymous_discovery:
        listed = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
        document["resource_name"] = routes.service.identity.name or routes.service.identity.server_id
        document["scopes_supported"] = sorted({scope for endpoint in listed for scope in endpoint.required_scopes})
    document["bearer_methods_supported"] = ["header"]
    return msgspec.json.encode(document)
