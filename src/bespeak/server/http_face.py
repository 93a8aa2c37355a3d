"""The HTTP face of what was put together: its pages, its application, its limits."""

from __future__ import annotations

from bespeak.documents.http_toml import HttpSettings
from bespeak.http.face import HttpFace
from bespeak.http.origin import Origins
from bespeak.http.page import Page
from bespeak.runtime.access_log import AccessLog
from bespeak.server.assembly import Assembled
from bespeak.wire.limits import DEFAULT_LIMITS, Limits


def make_face(
    assembled: Assembled, settings: HttpSettings, *, limits: Limits = DEFAULT_LIMITS, loopback: bool = False
) -> HttpFace:
    """The ASGI application of an assembled service; `loopback` where it listens on this machine alone."""
    dispatcher, registry = assembled.dispatcher, assembled.registry
    handler = AccessLog(dispatcher, registry) if AccessLog.wanted() else dispatcher
    origins = Origins(url=settings.url, allowed=settings.cors, loopback=loopback)
    pages = make_pages(assembled, settings)
    return HttpFace(handler, registry, pages, limits=limits, origins=origins, prefix=settings.prefix)


def make_pages(assembled: Assembled, settings: HttpSettings) -> dict[str, Page]:
    """What stands at fixed paths."""
    return {}
