"""What a handler may know of the call beside its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.protocol.exchange.headers import REQUEST_ID, SESSION_ID, TASK_ID
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.principal import Principal


class Context(msgspec.Struct, frozen=True):
    """Ask for it with a parameter annotated `Context`. Everything in it has passed the gates."""

    request: Request
    principal: Principal
    method: str
    """The method in force, after redirects."""
    path: str
    input: Mapping[str, Any]
    """The validated input: body, query and path parameters together."""

    @property
    def agent_id(self) -> str | None:
        """The calling agent, or None for an anonymous call."""
        return self.principal.agent_id

    @property
    def task_id(self) -> str | None:
        """The caller's trace id."""
        return self.request.headers.get(TASK_ID)

    @property
    def session_id(self) -> str | None:
        """The caller's session id."""
        return self.request.headers.get(SESSION_ID)

    @property
    def request_id(self) -> str | None:
        """The caller's id for this request."""
        return self.request.headers.get(REQUEST_ID)
