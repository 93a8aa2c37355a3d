"""A service as an ASGI application: under a server of one's own, or mounted inside another application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bespeak.app.authoring.app import App
from bespeak.app.server.assembly import now
from bespeak.app.server.http_face import make_face, make_way
from bespeak.app.server.http_pages import Publishing
from bespeak.app.server.keeper import Keeper
from bespeak.app.server.log import log_findings
from bespeak.app.server.serving import assemble_target, signing_keys
from bespeak.app.server.state import store_place
from bespeak.app.server.target import Target, load_app, load_target
from bespeak.documents.deployment.http_settings import HttpSettings, read_http
from bespeak.errors import BespeakError, ConfigError
from bespeak.faces.http.asgi import Receive, Reply, Scope, Send, send_reply
from bespeak.faces.http.face import refusal
from bespeak.protocol import status
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.state.store.opening import Role, open_store
from bespeak.state.store.settings import MEMORY
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.table import Table
from bespeak.text.source.span import Location

_logger = logging.getLogger(__name__)


def asgi(target: App | str | Path, *, store: str | None = None, **http: Any) -> MountedService:
    """An ASGI application that serves `target`: an App, or what `bespeak serve` takes (a folder, a file, module:app).

    `store` is where state is kept, as with `bespeak serve --store`; without it the state of an App ends with its
    process. Other keywords are keys of `[http]`: `url`, `cors`, `trusted_proxies` and so on.

    The application opens its store when the server says that it starts (lifespan) and closes it at the end, so that
    `uvicorn module:name` is all it takes. Starlette and FastAPI do not tell the applications mounted in them. Such a
    one begins with its first request; to have it closed in order too, hold it open in the lifespan of the whole:

        rooms = bespeak.asgi("rooms.py:app", store="rooms.db")

        @asynccontextmanager
        async def lifespan(_):
            async with rooms.running():
                yield

        app = Starlette(routes=[Mount("/rooms", rooms)], lifespan=lifespan)

    Who is let in is for `[auth]` of a bespeak.toml to say. An App alone has none, and callers are believed, as
    `bespeak serve` does on this machine only; where the server outside listens is not known here, so that it is a
    warning in the log. To have callers prove who they are, write `[server] app = "rooms:app"` and `[auth]` into a
    bespeak.toml beside the app, and give its folder.
    """
    if isinstance(target, App):
        loaded, place = load_app(target, Path.cwd()), store or MEMORY
    else:
        loaded, place = load_target(str(target)), store_place(str(target), store)
    return MountedService(loaded, place, _settings(loaded.document.http, http))


class MountedService:
    """One service, its face and its state, for whoever speaks ASGI."""

    def __init__(self, target: Target, store: str, settings: HttpSettings) -> None:
        self._target = target
        self._place = store
        self._assembled = assemble_target(target, now(), http_url=settings.url)
        log_findings(self._assembled.findings)
        limits = Limits(body=target.document.limits.max_body or DEFAULT_LIMITS.body)
        document = target.document
        publishing = Publishing(auth=document.auth, keys_required=document.idempotency.require)
        face = make_face(self._assembled, settings, limits=limits, publishing=publishing)
        self._way = make_way(face, settings) or face
        self._keeper: Keeper | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._loop is not asyncio.get_running_loop():
            try:
                await self.start()
            except BespeakError as error:
                if scope["type"] != "http":
                    raise
                await send_reply(_not_started(error), scope["method"], send)
                return
        await self._way(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[MountedService]:
        """Open the store, keep it open inside the block, close it."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Begin to keep state in the running loop; nothing happens if that was done."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop.is_closed():
            # A server that is started again in the same process, as tests do, has a loop of its own.
            self._starting, self._loop, self._keeper = asyncio.Lock(), None, None
        async with self._starting:
            if self._keeper is not None:
                return
            document = self._target.document
            if document.auth.is_open:
                _logger.warning("callers are believed whatever they say they are: no [auth] modes are chosen")
            # Nobody knows how many processes the server has, so the store is never taken for one's own.
            role: Role = "sole" if self._place == MEMORY else "shared"
            store = open_store(self._place, role=role, durability=document.store.durability)
            keeper = Keeper(self._assembled, store, document, signing_keys(document.signing_key))
            await keeper.start()
            self._keeper, self._loop = keeper, loop

    async def stop(self) -> None:
        """Finish what is under way and close the store."""
        keeper, self._keeper, self._loop = self._keeper, None, None
        if keeper is not None:
            await self._assembled.registry.close()
            await keeper.stop()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except BespeakError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _not_started(error: BespeakError) -> Reply:
    """The answer where state cannot be kept: as with a store that went away, nothing is acknowledged."""
    _logger.error("The service cannot begin: %s", error)
    message = "This server cannot reach its state, so nothing is acknowledged. Try again later."
    reply = refusal(status.UNAVAILABLE, "store-unavailable", message)
    reply.headers.append((b"retry-after", b"2"))
    return reply


def _settings(given: HttpSettings, changes: dict[str, Any]) -> HttpSettings:
    known = {field.name for field in fields(HttpSettings)}
    for name in changes:
        if name not in known:
            raise ConfigError(f"[http] has no key {name!r}; it has {', '.join(sorted(known))}")
    # Read like those of a file: a text in place of a list of origins would let in whoever is a part of it.
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()}
    findings = Findings(lambda _: Location("asgi"))
    read = read_http(Table({"http": values}, "", findings))
    for found in findings.found:
        if found.severity == "error":
            raise ConfigError(f"{found.message}. {found.help}".rstrip())
    return replace(given, **{name: getattr(read, name) for name in changes})
