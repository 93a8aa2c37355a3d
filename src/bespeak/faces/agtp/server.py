"""AGTP over TCP and TLS."""

from __future__ import annotations

import asyncio

from bespeak.faces.agtp.connection import AgtpConnection
from bespeak.faces.capacity import Capacity
from bespeak.faces.connection import Shared
from bespeak.faces.server import FaceServer
from bespeak.faces.timeouts import DEFAULT_TIMEOUTS, Timeouts
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.translation import to_bytes
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits


class AgtpServer(FaceServer):
    """Serves one handler on any number of addresses."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: Limits = DEFAULT_LIMITS,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        capacity: Capacity | None = None,
    ) -> None:
        super().__init__(timeouts=timeouts, capacity=capacity)
        self._handler = handler
        self._limits = limits

    def connect(self, shared: Shared) -> AgtpConnection:
        """Make the protocol of one connection."""
        return AgtpConnection(shared, self._handler, self._limits, asyncio.get_running_loop())

    def refuse(self, fault: Malformed) -> bytes:
        """Encode a refusal for a peer that is not admitted."""
        return to_bytes(self._handler.malformed(fault, Connection()))
