"""One service on two faces: AGTP and HTTP, both on real ports of this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

from tests.service import echo, make_endpoint
from tests.stateful import keeping

from bespeak.agent.client.connect import connect
from bespeak.agent.client.sender import RetryPolicy
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.app.server.http_face import make_face
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.handler import Refusal
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.server import HttpServer

Face = Literal["agtp", "http"]
FACES: tuple[Face, ...] = ("agtp", "http")
AT_ONCE = RetryPolicy(attempts=3, first_delay=0, longest_delay=0)
NOTHING_KEPT = WebOptions(cache="off")


class Rooms:
    """What the endpoints do, and how often."""

    def __init__(self) -> None:
        self.booked = 0

    def book(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        if input["room_id"] == "taken":
            raise Refusal("room_unavailable", "The room is taken.", next_free="2027-01-01")
        self.booked += 1
        return {"reservation": self.booked, **input}

    def endpoints(self) -> tuple[Endpoint, ...]:
        texts = {"room_id": {"type": "string", "minLength": 1}, "guests": {"type": "integer"}}
        return (
            make_endpoint(
                "BOOK",
                "/room",
                self.book,
                properties=texts,
                required=("room_id",),
                errors=("room_unavailable",),
                impact="irreversible",
            ),
            make_endpoint("FIND", "/rooms/{room_id}", echo, properties=texts),
            make_endpoint("CANCEL", "/room", echo, properties=texts, scopes=("room:cancel",)),
            make_endpoint("RESERVE", "/room", echo, properties=texts, deprecated=Deprecation(deprecated_in="1.0")),
        )


class Served:
    """Where one service is reached."""

    def __init__(self, rooms: Rooms, agtp: int, http: int) -> None:
        self.rooms = rooms
        self.uris: dict[Face, str] = {"agtp": f"agtp://127.0.0.1:{agtp}", "http": f"http://127.0.0.1:{http}"}


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Served]:
    """A service on both faces, with a store in memory behind it."""
    rooms = Rooms()
    async with keeping(*rooms.endpoints(), **options) as bench:
        dispatcher = bench.bench.dispatcher
        agtp, http = AgtpServer(dispatcher), HttpServer(make_face(dispatcher, HttpSettings(), loopback=True))
        [(_, first)] = await agtp.start("127.0.0.1", 0)
        [(_, second)] = await http.start("127.0.0.1", 0)
        try:
            yield Served(rooms, first, second)
        finally:
            await http.close()
            await agtp.close()


@asynccontextmanager
async def talking(
    face: Face, server: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[ServiceClient, Served]]:
    """A client of the service over one face; `server` is how the service is set up."""
    async with (
        served(**(server or {})) as place,
        connect(place.uris[face], retry=AT_ONCE, web=NOTHING_KEPT, **options) as service,
    ):
        yield service, place
