"""The boundary between faces and runtime: all that a face knows of a server."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response


class Handler(Protocol):
    """Answers requests. A response that is ready is returned at once; a coroutine means a real wait."""

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response]:
        """Answer a request. Never raises: internal errors become responses too."""
        ...

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        """Answer bytes that are not a valid request."""
        ...
