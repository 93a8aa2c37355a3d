"""A service whose handlers yield, on both faces, and what became of its generators."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from bespeak import App, Context, Policies, Refusal
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.http_face import build_middleware, make_face
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_app
from bespeak.contract.limits import StreamLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.server import HttpServer
from bespeak.faces.limits import Timeouts
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.settings import MEMORY, open_store

SIZE = 10_000  # characters of one tick


@dataclass
class Room:
    """An item."""

    room_id: str
    beds: int = 1


@dataclass
class Suite(Room):
    """An item with more than its declared type."""

    secret: str = "not to be sent"


class Streams:
    """The service: what its generators have yielded, and which of them were closed."""

    def __init__(self, **options: Any) -> None:
        self.yielded = 0
        self.closed: asyncio.Event = asyncio.Event()
        self.thread_closed = threading.Event()
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        options.setdefault("policies", Policies(scope_required_for_invocation=False))
        self.app = App("Streams", server_id="streams.example", operator="Test", contact="a@b.example", **options)
        declare = self.app.endpoint
        declare("QUERY", "/rooms", impact="informational", errors={"sold_out": "No room is left."})(self.rooms)
        declare("QUERY", "/words", impact="informational")(self.words)
        declare("QUERY", "/ticks", impact="informational")(self.ticks)
        declare("QUERY", "/odd", impact="informational")(self.odd)
        declare("QUERY", "/silence", impact="informational")(self.silence)
        declare("QUERY", "/deaf", impact="informational")(self.deaf)
        declare("QUERY", "/stubborn", impact="informational")(self.stubborn)
        declare("QUERY", "/secrets", impact="informational", scopes=["rooms:read"])(self.secrets)
        declare("MODIFY", "/rooms", impact="reversible")(self.modify)

    async def rooms(self, count: int = 3, fail_after: int = 99, waits: bool = False) -> AsyncIterator[Room]:
        """List the rooms.

        Outcome: The rooms are returned.
        """
        try:
            for number in range(count):
                if number == fail_after:
                    raise Refusal("sold_out", left=0)
                if waits:
                    await asyncio.sleep(0)
                self.yielded += 1
                yield Suite(str(number))
        finally:
            self.closed.set()

    def words(self, count: int = 3) -> Iterator[str]:
        """List the words.

        Outcome: The words are returned.
        """
        try:
            for number in range(count):
                yield f"{threading.current_thread() is threading.main_thread()} {number}"
        finally:
            self.thread_closed.set()

    async def ticks(self, pause: bool = False) -> AsyncIterator[str]:
        """List ticks without end; with a pause, none after the first.

        Outcome: The ticks are returned.
        """
        try:
            while True:
                self.yielded += 1
                yield "x" * SIZE
                if pause:
                    await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # clean-up may wait
            self.closed.set()

    async def silence(self) -> AsyncIterator[str]:
        """List nothing for ever.

        Outcome: Nothing is returned.
        """
        try:
            self.begun.set()
            await asyncio.Event().wait()
            yield "never"
        finally:
            self.closed.set()

    async def odd(self, kind: str) -> AsyncIterator[Room]:
        """List odd things.

        Outcome: They are returned.
        """
        try:
            yield Room("fine")
            if kind == "wrong":
                yield cast("Room", {"room_id": 5})
            elif kind == "huge":
                yield Room("x" * 400_000)
            elif kind == "raises":
                raise RuntimeError("a secret")
            elif kind == "exits":
                raise SystemExit
        finally:
            self.closed.set()

    async def stubborn(self) -> AsyncIterator[int]:
        """List numbers without end, whoever wants it to stop.

        Outcome: The numbers are returned.
        """
        number = 0
        while True:
            number += 1
            yield number
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.closed.set()

    async def deaf(self) -> AsyncIterator[int]:
        """List one number, and wait for the test alone.

        Outcome: The number is returned.
        """
        yield 1
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.closed.set()

    async def secrets(self, context: Context) -> AsyncIterator[int]:
        """List numbers for those who may see them.

        Outcome: The numbers are returned.
        """
        try:
            for number in range(1_000_000):
                yield number
                await asyncio.sleep(0)
        finally:
            self.closed.set()

    async def modify(self) -> AsyncIterator[Room]:
        """Change the rooms.

        Outcome: The rooms are changed.
        """
        self.yielded += 1
        yield Room("1")


@dataclass
class Served:
    """Where a service is reached, and what answers there."""

    streams: Streams
    dispatcher: Dispatcher
    agtp: AgtpServer
    http: HttpServer
    ports: dict[str, int]

    def uri(self, face: str) -> str:
        return f"{face}://127.0.0.1:{self.ports[face]}"

    async def closed(self) -> None:
        await asyncio.wait_for(self.streams.closed.wait(), 20)


@asynccontextmanager
async def serving(
    streams: Streams | None = None,
    *,
    limits: StreamLimits | None = None,
    timeouts: Timeouts | None = None,
    document: ServerDocument | None = None,
    audited: bool = False,
    cors: tuple[str, ...] = (),
) -> AsyncIterator[Served]:
    """Serve it on real ports, with a store in memory."""
    streams = streams or Streams()
    target = load_app(streams.app, Path())
    target = replace(target, service=replace(target.service, stream_limits=limits or StreamLimits()))
    document = document or ServerDocument(audit=AuditSettings(records="all") if audited else AuditSettings())
    keeper = Keeper(assemble_target(target, "2026-11-16T00:00:00Z"), open_store(MEMORY, role="sole"), document)
    await keeper.start()
    settings = HttpSettings(cors=cors)
    face = make_face(keeper.dispatcher, settings, loopback=True)
    agtp = AgtpServer(keeper.dispatcher, timeouts=timeouts or Timeouts())
    http = HttpServer(face, build_middleware(face, settings), timeouts=timeouts or Timeouts())
    [(_, first)] = await agtp.start("127.0.0.1", 0)
    [(_, second)] = await http.start("127.0.0.1", 0)
    try:
        yield Served(streams, keeper.dispatcher, agtp, http, {"agtp": first, "http": second})
    finally:
        await agtp.close()
        await http.close()
        await keeper.stop()
