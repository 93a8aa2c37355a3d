"""Construction of the HTTP face: its pages, application and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from bespeak.app.server.http_pages import Pages, Publishing, make_pages
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.origin import Origins
from bespeak.faces.http.translation import EXPOSED_HEADERS, READ_HEADERS
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.route_table import RouteTable

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
