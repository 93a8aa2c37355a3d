"""One exchange, request and answer, as an event for loggers and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.exchange.messages import Connection, Response
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.call import Call

_ECHOED: Final = {
    "Response-ID": "response_id",
    "Request-ID": "request_id",
    "Task-ID": "task_id",
    "Audit-ID": "audit_id",
}
"""Headers of an answer that name it, its request or its record."""

REPLAYED: Final = ("Idempotency-Replayed", "true")
"""Header that marks a replayed answer."""

_LONGEST: Final = 128
"""Maximum characters of an id or a method chosen by a peer."""


class Exchange(msgspec.Struct, frozen=True):
    """A call and its answer. Its properties may be logged: none of them contains a value the caller sent."""

    call: Call
    response: Response
    seconds: float | None = None
    """Duration of the answer; None before it is complete."""

    @property
    def replayed(self) -> bool:
        """True if the answer is replayed from an earlier request with the same idempotency key."""
        return REPLAYED in self.response.headers

    @property
    def method(self) -> str:
        """The method in force."""
        return self.call.method[:_LONGEST]

    @property
    def template(self) -> str | None:
        """Path template of the endpoint; None if the call did not reach an endpoint."""
        route = self.call.route
        return None if route is None else route.endpoint.path

    @property
    def path(self) -> str:
        """The template; without one, the request's path with `*` for each segment that no contract has.

        A path segment can be a token or a person's name, and more people read a log than a request.
        """
        call = self.call
        route = call.route
        if route is not None and route is not call.routes.wildcard:
            return route.endpoint.path
        words = call.routes.path_words
        parts = call.path[:2000].split("/")[:20]
        return "/".join(part if part in words else "*" for part in parts)

    @property
    def face(self) -> str:
        """The face that received the request: `agtp`, `http`, `mcp` or `a2a`."""
        return self.call.request.connection.face

    @property
    def refusal(self) -> str | None:
        """Code of the refusal; None for a success."""
        return self.response.code

    @property
    def claimed_agent_id(self) -> str | None:
        """Agent-ID claimed by a caller that was refused before it was identified."""
        if self.call.principal.agent_id is not None:
            return None
        claimed = self.call.request.headers.get(AGENT_ID)
        # A text that is not an id might be a secret.
        return claimed if claimed is not None and is_canonical_id(claimed) else None

    @property
    def caller(self) -> str:
        """Description of the caller, for people."""
        claimed = self.claimed_agent_id
        return self.call.agent_id or ("anonymous" if claimed is None else f"a caller claiming to be {claimed}")

    @property
    def particulars(self) -> dict[str, Any]:
        """Members of the log entry."""
        principal = self.call.principal
        return {
            **_ids(self.response.headers),
            "agent_id": principal.agent_id,
            # Core 10.1: an agent is logged with the principal it acts for.
            "principal_id": principal.principal_id and principal.principal_id[:_LONGEST],
            "claimed_agent_id": self.claimed_agent_id,
            "method": self.method,
            "path": self.path,
            "status": self.response.status,
            "peer": self.call.request.connection.peer,
        }


Subscriber = Callable[[Exchange], None]
"""Callback for every exchange once its answer is complete. It must not raise or block."""


def particulars_of_fault(connection: Connection, status: int, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the members of a log entry about bytes that are not a valid request."""
    return {**_ids(headers), "status": status, "peer": connection.peer}


def _ids(headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    return {_ECHOED[name]: value[:_LONGEST] for name, value in headers if name in _ECHOED}
