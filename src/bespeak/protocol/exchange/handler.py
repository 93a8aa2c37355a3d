"""The boundary between transports and the runtime: all that a transport knows of a server."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response


class Handler(Protocol):
    """Answers requests. An answer that needs no waiting is returned at once; only a real wait is a coroutine."""

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response]:
        """Answer a request. Never raises: what goes wrong inside is a response too."""
        ...

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        """Answer bytes that were no request."""
        ...
