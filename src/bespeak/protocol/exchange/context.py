"""Context of a call: what a handler may read beside its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.protocol.exchange.headers import REQUEST_ID, SESSION_ID, TASK_ID
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.progress import REPORT


class Context(msgspec.Struct, frozen=True):
    """The current call. A handler receives it in a parameter annotated `Context`, after all gates have passed."""

    request: Request
    """The request as received, with its headers."""
    principal: Principal
    """The caller: agent, scopes and how they were verified."""
    method: str
    """The method after redirects."""
    path: str
    """The path after redirects, with its actual values."""
    input: Mapping[str, Any]
    """The validated input: body, query and path parameters together."""
    state: Any = None
    """What the service's lifespan function has yielded: connections, caches, clients. None without one."""

    @property
    def agent_id(self) -> str | None:
        """Agent-ID of the caller; None for an anonymous call."""
        return self.principal.agent_id

    @property
    def semantic(self) -> Any:
        """Semantic profile of the call in the vocabulary of the service, a `SemanticProfile`; None without one."""
        meaning = self.request.semantic
        return None if meaning is None else meaning.understood

    @property
    def task_id(self) -> str | None:
        """Task-ID of the request, for tracing."""
        return self.request.headers.get(TASK_ID)

    @property
    def session_id(self) -> str | None:
        """Session-ID of the request."""
        return self.request.headers.get(SESSION_ID)

    @property
    def request_id(self) -> str | None:
        """Request-ID of the request."""
        return self.request.headers.get(REQUEST_ID)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell a waiting client how far the call is: `done` of `total`, and what is being done.

        `done` must increase. Over MCP the client is told if it wants to know, and over A2A if it follows the task;
        elsewhere nothing happens. It may be called from a thread, and never waits.
        """
        report = REPORT.get()
        if report is not None:
            report(done, total, message)
