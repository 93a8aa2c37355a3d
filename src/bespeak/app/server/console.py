"""Construction of the console: its files, who is admitted, and what its JSON API answers."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from bespeak.app.server.http_pages import Publishing, reach_of
from bespeak.app.server.settings import HttpAssembly, Settings
from bespeak.faces import console
from bespeak.faces.console.application import PATH, Access, ConsoleApplication, View, Visit
from bespeak.faces.console.contract import describe_endpoint, list_endpoints
from bespeak.faces.console.exchanges import Asked, is_irreversible, make_exchange
from bespeak.faces.console.live import Live
from bespeak.faces.http.asgi import Application, HttpResponse
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.http.face import Origins
from bespeak.faces.http.site import Page
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Refused

_FILES: Final = Path(console.__file__).with_name("static")
_MAP: Final = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


def mount_console(assembly: HttpAssembly, publishing: Publishing, settings: Settings) -> dict[str, Application]:
    """Return the console by its paths. A proxy may have removed the prefix of the public URL."""
    web, dispatcher = assembly.web, assembly.dispatcher
    server = dispatcher.server
    origins = Origins(url=web.url, loopback=assembly.loopback)  # pages of other origins never, whatever [http] cors
    access = Access(DispatchBackend(dispatcher, server, "console"), origins, settings.console_token)
    views = _Views(assembly, publishing, settings, access)
    app = ConsoleApplication(access, _files(), views.table(), Live(dispatcher))
    return {f"{prefix}{path}": app for prefix in dict.fromkeys(("", web.prefix)) for path in app.paths}


class _File(Page):
    """A file that is always sent whole."""

    def answer(self, headers: Mapping[str, str]) -> HttpResponse:
        # The server sends the end of a chunked body after the head of a 304 of a mounted application, and browsers
        # take it for the beginning of the next response.
        return super().answer({})


def _files() -> dict[str, Page]:
    return {
        str(path.relative_to(_FILES)): _page(path)
        for path in sorted(_FILES.rglob("*"))
        if path.is_file() and path.suffix in (".html", ".css", ".js", ".mjs", ".svg")
    }


def _page(path: Path) -> Page:
    content = path.read_bytes()
    kind = "text/javascript" if path.suffix in (".js", ".mjs") else mimetypes.types_map.get(path.suffix, "text/plain")
    policy = _policy(content) if path.suffix == ".html" else None
    return _File(lambda: content, f"{kind}; charset=utf-8", policy=policy, lifetime=0)


def _policy(page: bytes) -> str:
    """Write the Content-Security-Policy of the page: its own files only, and the one import map by its hash."""
    found = _MAP.search(page)
    hashed = "" if found is None else f" 'sha256-{base64.b64encode(hashlib.sha256(found[1]).digest()).decode()}'"
    return (
        f"default-src 'none'; script-src 'self'{hashed}; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class _Views:
    """What the JSON API answers about one server."""

    def __init__(self, assembly: HttpAssembly, publishing: Publishing, settings: Settings, access: Access) -> None:
        self._assembly = assembly
        self._server = assembly.dispatcher.server
        self._publishing = publishing
        self._settings = settings
        self._access = access

    def table(self) -> dict[str, View]:
        return {
            "session": View(self._session),
            "endpoints": View(self._endpoints),
            "endpoint": View(self._endpoint),
            "exchange": View(self._exchange, acts=True),
        }

    async def _session(self, _: Visit) -> Mapping[str, Any]:
        routes = self._server.routes
        identity = routes.service.identity
        reach = reach_of(routes, self._assembly.web, self._publishing)
        return {
            "service": {
                "name": identity.name or identity.server_id,
                "server_id": identity.server_id,
                "description": routes.service.description,
            },
            "version": version("bespeak"),
            "access": self._access.identity,
            "identity": "declared" if self._assembly.auth.is_open else "verified",
            "agtp": reach.agtp,
            "http": reach.url,
            "mcp": reach.mcp,
            "workers": self._settings.workers,
            "path": PATH,
        }

    async def _endpoints(self, _: Visit) -> list[Any]:
        return list_endpoints(self._server.routes)

    async def _endpoint(self, visit: Visit) -> Mapping[str, Any] | Refused:
        method, path = visit.given.get("method", ""), visit.given.get("path", "")
        reach = reach_of(self._server.routes, self._assembly.web, self._publishing)
        found = describe_endpoint(self._server.routes, method, path, reach)
        message = f"There is no endpoint {method[:40]} {path[:120]}."
        return Refused(status.NOT_FOUND, "endpoint-not-found", message) if found is None else found

    async def _exchange(self, visit: Visit) -> Mapping[str, Any] | Fault | Refused:
        try:
            asked = msgspec.convert(visit.given, Asked)
        except msgspec.ValidationError as error:
            return Fault(f"The call is not valid: {error}.")
        if not asked.confirmed and is_irreversible(self._server, asked):
            message = f"{asked.method} {asked.path} cannot be undone; send it again with confirmed: true."
            return Refused(status.CONFLICT, "press-again", message)
        return await make_exchange(self._assembly.dispatcher, asked, visit.connection)
