"""ASGI application for a service: served on its own, or mounted in another application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bespeak.app.authoring.app import App
from bespeak.app.server.assembly import Keeper, now
from bespeak.app.server.http_face import build_middleware, make_face
from bespeak.app.server.http_pages import Publishing
from bespeak.app.server.log import log_findings
from bespeak.app.server.serving import WebApplications, assemble_target
from bespeak.app.server.settings import HttpAssembly
from bespeak.app.server.target import Target, load_app, load_target
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import BespeakError, ConfigError
from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.face import refusal
from bespeak.faces.http.translation import local_path
from bespeak.protocol import status
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.identity.signer import signing_keys
from bespeak.state.store.settings import MEMORY, Role, open_store
from bespeak.terminal.deployment import store_place
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location

_logger = logging.getLogger(__name__)


def asgi(target: App | str | Path, *, store: str | None = None, **http: Any) -> MountedService:
    """Create an ASGI application from an App, a folder, a file or `module:app`.

    `store` is where state is kept, as in `bespeak serve --store`. Without it, an App keeps state in memory only. Other
    keywords are keys of `[http]`: `url`, `cors`, `trusted_proxies` and so on.

    Served on its own (`uvicorn module:name`), the application opens and closes its store with the server's lifespan.
    Starlette and FastAPI do not pass lifespan events to mounted applications. Hold a mounted one open yourself:

        rooms = bespeak.asgi("rooms.py:app", store="rooms.db")

        @asynccontextmanager
        async def lifespan(_):
            async with rooms.running():
                yield

        app = Starlette(routes=[Mount("/rooms", rooms)], lifespan=lifespan)

    An App on its own has no `[auth]` settings, so the headers of callers are believed; the log warns about it. To
    authenticate callers, write `[auth]` into the bespeak.toml beside its file, and pass the path of the file.
    """
    if isinstance(target, App):
        loaded, place = load_app(target, Path.cwd()), store or MEMORY
    else:
        loaded, place = load_target(str(target)), store_place(str(target), store)
    return MountedService(loaded, place, _settings(loaded.document.http, http))


class MountedService:
    """An ASGI application that serves one service. `bespeak.asgi` creates it."""

    def __init__(self, target: Target, store: str, settings: HttpSettings) -> None:
        self._target = target
        self._place = store
        self._assembled = assemble_target(target, now(), http_url=settings.url)
        log_findings(self._assembled.findings)
        self._settings = settings
        self._keeper: Keeper | None = None
        self._beside: WebApplications | None = None
        self._application: Application | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the lifespan of the server."""
        if scope["type"] == "lifespan":
            await self._follow_lifespan(receive, send)
            return
        application = self._application
        if application is None or self._loop is not asyncio.get_running_loop():
            try:
                application = await self.start()
            except BespeakError as error:
                if scope["type"] != "http":
                    raise
                await send_response(_not_started(error), scope["method"], send)
                return
        await application(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[MountedService]:
        """Keep the store open during an `async with` block."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> Application:
        """Open the store in the running loop, unless that is done; return the application that answers requests."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop.is_closed():
            # A server restarted in the same process, as in tests, has a new loop.
            self._starting, self._loop, self._keeper, self._application = asyncio.Lock(), None, None, None
        async with self._starting:
            if self._application is not None:
                return self._application
            document = self._target.document
            if document.auth.is_open:
                _logger.warning("callers are not authenticated: no [auth] modes are chosen")
            # The number of processes is unknown, so the store is assumed to be shared.
            role: Role = "sole" if self._place == MEMORY else "shared"
            store = open_store(self._place, role=role, durability=document.store.durability)
            keeper = Keeper(self._assembled, store, document, signing_keys(document.signing_key))
            await keeper.start()
            limits = Limits(body=document.limits.max_body or DEFAULT_LIMITS.body)
            required, mcp = document.idempotency.require, document.mcp.enabled
            publishing = Publishing(auth=document.auth, keys_required=required, mcp=mcp, a2a=document.a2a)
            face = make_face(keeper.dispatcher, self._settings, limits=limits, publishing=publishing)
            own = build_middleware(face, self._settings) or face
            assembly = HttpAssembly(keeper.dispatcher, self._settings, document.auth, limits)
            self._beside = WebApplications(assembly, document.mcp, document.a2a)
            await self._beside.start()
            places = self._beside.places or {}

            async def answer(scope: Scope, receive: Receive, send: Send) -> None:
                found = places.get(local_path(scope)) if scope["type"] == "http" else None
                await (found or own)(scope, receive, send)

            self._keeper, self._loop, self._application = keeper, loop, answer if places else own
            return self._application

    async def stop(self) -> None:
        keeper, self._keeper, self._loop, self._application = self._keeper, None, None, None
        beside, self._beside = self._beside, None
        if beside is not None:
            await beside.stop()
        if keeper is not None:
            await keeper.stop()

    async def _follow_lifespan(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] == "lifespan.startup":
            try:
                await self.start()
            except BespeakError as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


def _not_started(error: BespeakError) -> HttpResponse:
    _logger.error("The service cannot start: %s", error)
    message = "This server cannot reach its store, so the request is not acknowledged. Try again later."
    reply = refusal(status.UNAVAILABLE, "store-unavailable", message)
    reply.headers.append((b"retry-after", b"2"))
    return reply


def _settings(given: HttpSettings, changes: dict[str, Any]) -> HttpSettings:
    known = {field.name for field in fields(HttpSettings)}
    for name in changes:
        if name not in known:
            raise ConfigError(f"[http] has no key {name!r}; it has {', '.join(sorted(known))}")
    # Validated like those of a file: a string in place of a list of origins would allow each of its parts.
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()}
    findings = Findings(lambda _: Location("asgi"))
    read = read_settings(HttpSettings, Table(values, "/http", findings))
    for found in findings.found:
        if found.severity == "error":
            raise ConfigError(f"{found.message}. {found.help}".rstrip())
    return replace(given, **{name: getattr(read, name) for name in changes})
