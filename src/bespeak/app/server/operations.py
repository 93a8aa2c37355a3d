"""The operator's address: `/healthz` and `/metrics`, apart from what agents see."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from bespeak.errors import StoreError
from bespeak.faces.http.asgi import HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.origin import Origins
from bespeak.protocol import status
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.metrics import Metrics
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Store

WITHIN: Final = 0.9
"""Seconds for the store to answer: load balancers do not wait much longer."""
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
