"""Construction of the HTTP face, of guarded applications on it, and of the operator's `/healthz` and `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import msgspec

from bespeak.app.server.http_pages import Pages, Publishing, make_pages
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError, StoreError
from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.face import HttpFace, Origins
from bespeak.faces.http.guard import METADATA, Guard
from bespeak.faces.http.site import Page
from bespeak.faces.http.translation import EXPOSED_HEADERS, READ_HEADERS
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Metrics
from bespeak.runtime.route_table import RouteTable
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Store

CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("GET", "HEAD", "POST"),
    "allow_headers": ("content-type", *READ_HEADERS),
    "expose_headers": EXPOSED_HEADERS,
}


def make_face(
    dispatcher: Dispatcher,
    settings: HttpSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
    publishing: Publishing | None = None,
) -> HttpFace:
    """Build the ASGI application of a server; `loopback` is True if it listens on loopback only."""
    publishing = publishing or Publishing()

    def pages(routes: RouteTable) -> Pages:
        return make_pages(routes, settings, publishing, keeps_state=dispatcher.keeps_state)

    return HttpFace(
        dispatcher,
        dispatcher.server,
        pages,
        limits=limits,
        origins=Origins(url=settings.url, allowed=settings.cors, loopback=loopback),
        prefix=settings.prefix,
        modes=publishing.auth.modes,
    )


def build_middleware(app: Application, settings: HttpSettings, cors: Mapping[str, Any] = CORS) -> Application | None:
    """Build the configured middleware of an application; None if there is none.

    The client address named by a trusted proxy is applied first. `cors` says what pages of other origins may send.
    """
    outer: Application | None = None
    if settings.cors:
        from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - only for CORS

        outer = CORSMiddleware(cast("Any", app), allow_origins=settings.cors, max_age=3600, **cors)
    if settings.trusted_proxies:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - only behind proxies

        outer = cast("Application", ProxyHeadersMiddleware(cast("Any", outer or app), list(settings.trusted_proxies)))
    return outer


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


@contextmanager
def extra_needed(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Raise ConfigError with install advice if an import of one of the packages fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise ConfigError(f"{what} needs the official SDK: pip install 'bespeak[{extra}]'") from error


WITHIN: Final = 0.9  # seconds for the store to answer: load balancers do not wait much longer
MOST_CONNECTIONS: Final = 32
MOST_BUFFERED: Final = 1024 * 1024


class Operations:
    """ASGI application for monitoring. It calls no endpoint and is not authenticated."""

    def __init__(self, dispatcher: Dispatcher, metrics: Metrics | None, *, loopback: bool) -> None:
        self._store = dispatcher.server.store
        self._metrics = metrics
        self._origins = Origins(loopback=loopback)
        self._looking: asyncio.Task[int] | None = None
        """Reading of the store that has not ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        forbidden = self._origins.check_host(headers) or self._origins.check_origin(headers)
        if forbidden is not None:
            reply = _json(forbidden.status, {"error": forbidden.message})
        elif scope["method"] not in ("GET", "HEAD"):
            reply = _json(status.METHOD_NOT_ALLOWED, {"error": "use GET"})
        elif scope["path"] == "/healthz":
            reply = await self._health()
        elif scope["path"] == "/metrics" and self._metrics is not None:
            text, media_type = self._metrics.write()
            reply = _reply(status.OK, text, media_type)
        else:
            known = "/healthz and /metrics" if self._metrics is not None else "/healthz"
            reply = _json(status.NOT_FOUND, {"error": f"this address has {known}"})
        await send_response(reply, scope["method"], send)

    async def _health(self) -> HttpResponse:
        """Answer 200 if calls can be answered: this process runs, and its store can be read in time."""
        reason = "" if self._store is None else await self._look(self._store)
        if reason:
            return _json(status.UNAVAILABLE, {"status": "unavailable", "reason": reason})
        return _json(status.OK, {"status": "ok"})

    async def _look(self, store: Store) -> str:
        """Read the store, and return what is wrong with it. A reading that takes too long goes on: it may have to
        connect first, and whoever asks next waits for the same one.
        """
        looking = self._looking
        if looking is None:
            looking = self._looking = asyncio.get_running_loop().create_task(store.read(ReadRevision()))
            looking.add_done_callback(self._forget)
        await asyncio.wait([looking], timeout=WITHIN)
        if not looking.done():
            return f"the store did not answer within {WITHIN:g} s"
        error = looking.exception()
        if error is not None and not isinstance(error, StoreError):
            raise error
        return "" if error is None else f"the store failed: {error}"

    def _forget(self, looking: asyncio.Task[int]) -> None:
        self._looking = None
        if not looking.cancelled():
            looking.exception()  # or asyncio reports that nobody has seen it


def _json(number: int, content: dict[str, str]) -> HttpResponse:
    return _reply(number, msgspec.json.encode(content), "application/json")


def _reply(number: int, body: bytes, media_type: str) -> HttpResponse:
    headers = [(b"content-type", media_type.encode()), (b"cache-control", b"no-store")]
    return HttpResponse(number, [*headers, (b"content-length", b"%d" % len(body))], body)
