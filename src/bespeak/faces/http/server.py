"""HTTP over TCP and TLS."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from email.utils import formatdate

from bespeak.faces.capacity import Capacity
from bespeak.faces.connection import Shared
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.face import HttpFace
from bespeak.faces.http.protocol import HttpConnection, Serving, encode_refusal
from bespeak.faces.server import FaceServer
from bespeak.faces.timeouts import DEFAULT_TIMEOUTS, Timeouts
from bespeak.protocol.exchange.messages import Connection, Malformed


class HttpServer(FaceServer):
    """Serves one face on any number of addresses."""

    def __init__(
        self,
        face: HttpFace,
        app: Application | None = None,
        *,
        streamed: Mapping[str, Application] | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        capacity: Capacity | None = None,
    ) -> None:
        """Serve `face`; with `app`, pass requests through that middleware first.

        `streamed` are applications by path that send their responses in parts.
        """
        super().__init__(timeouts=timeouts, capacity=capacity)
        self._serving = Serving(face, app, streamed)

    def connect(self, shared: Shared) -> HttpConnection:
        """Make the protocol of one connection."""
        return HttpConnection(shared, self._serving, asyncio.get_running_loop())

    def refuse(self, fault: Malformed) -> bytes:
        """Encode a refusal for a peer that is not admitted."""
        return encode_refusal(self._serving, fault, Connection(face="http"))

    def tick(self) -> None:
        """Update the `Date` header."""
        self._serving.date = b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode()
