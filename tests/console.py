"""The console over a service in this process, asked as the HTTP server asks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
from tests.service import Bench, build, echo, make_endpoint

from bespeak.app.server.console import mount_console
from bespeak.app.server.http_pages import Publishing
from bespeak.app.server.settings import HttpAssembly, plan_settings
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.http.asgi import Application, Receive, Scope, Send
from bespeak.state.store.settings import MEMORY

WEB = "http://127.0.0.1:8080"
TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}})
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")
FETCH = make_endpoint("FETCH", "/rooms/{room_id}", echo, properties={"room_id": TEXT}, required=("room_id",))


class Mounted:
    """The console of a service; of a new one with some endpoints, unless a bench is given."""

    def __init__(
        self,
        *endpoints: Endpoint,
        bench: Bench | None = None,
        target: str = "rooms",
        credential: str = "",
        **fields: Any,
    ) -> None:
        """Mount it for the holder of the token, or for whoever has a credential, as the server asks for it."""
        self.bench = bench or build(*(endpoints or (FIND, BOOK, FETCH)), **fields)
        settings = plan_settings("rooms", ServerDocument(), http="127.0.0.1:8080", console=True, store=MEMORY)
        self.token = settings.console_token or ""
        self.credential = credential
        if credential:
            settings = replace(settings, console_token=None)
        assembly = HttpAssembly(self.bench.dispatcher, HttpSettings(url=WEB), settings.auth, loopback=True)
        self.places = mount_console(assembly, Publishing(agtp_port=4480), settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: Application = self.places[scope["path"]]
        await app(scope, receive, send)

    async def ask(self, path: str, *, method: str = "GET", token: bool = True, **options: Any) -> httpx.Response:
        own = {"Authorization": f"Bearer {self.credential}"} if self.credential else {"Console-Token": self.token}
        headers = {**(own if token else {}), **options.pop("headers", {})}
        transport = httpx.ASGITransport(self)
        async with httpx.AsyncClient(transport=transport, base_url=WEB) as client:
            return await client.request(method, f"/console/{path}", headers=headers, **options)

    async def call(self, method: str, path: str, **asked: Any) -> httpx.Response:
        return await self.ask("api/exchange", method="POST", json={"method": method, "path": path, **asked})

    async def panel(self, name: str, **more: str) -> Any:
        """Return the blocks of a panel."""
        return (await self.ask("api/panel", params={"name": name, **more})).json()["blocks"]

    async def act(self, name: str, action: str, key: str, **fields: str) -> httpx.Response:
        asked = {"name": name, "action": action, "key": key, "fields": {"by": "ann", **fields}}
        return await self.ask("api/panel", method="POST", json=asked)


def code_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]
