"""The HTTP face of what was put together: its pages, its application, its limits."""

from __future__ import annotations

from typing import Any, cast

from bespeak.app.server.assembly import Assembled
from bespeak.app.server.http_pages import Publishing, make_pages
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.origin import Origins
from bespeak.faces.http.translation import EXPOSED_HEADERS, READ_HEADERS
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.runtime.access_log import AccessLog


def make_face(
    assembled: Assembled,
    settings: HttpSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
    publishing: Publishing | None = None,
) -> HttpFace:
    """The ASGI application of an assembled service; `loopback` where it listens on this machine alone."""
    dispatcher, registry = assembled.dispatcher, assembled.registry
    handler = AccessLog(dispatcher, registry) if AccessLog.wanted() else dispatcher
    origins = Origins(url=settings.url, allowed=settings.cors, loopback=loopback)
    pages = make_pages(assembled, settings, publishing)
    modes = (publishing or Publishing()).auth.modes
    return HttpFace(handler, registry, pages, limits=limits, origins=origins, prefix=settings.prefix, modes=modes)


def make_way(face: HttpFace, settings: HttpSettings) -> Application | None:
    """What requests go through on their way to the face where the operator has said more; None for the straight way.

    The address that a trusted proxy names goes before everything else is looked at.
    """
    way: Application | None = None
    if settings.cors:
        from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - for who lets pages of other sites call

        way = CORSMiddleware(
            cast("Any", face),
            allow_origins=settings.cors,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("content-type", *READ_HEADERS),
            expose_headers=EXPOSED_HEADERS,
            max_age=3600,
        )
    if settings.trusted_proxies:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - for who has proxies

        way = cast("Application", ProxyHeadersMiddleware(cast("Any", way or face), list(settings.trusted_proxies)))
    return way
