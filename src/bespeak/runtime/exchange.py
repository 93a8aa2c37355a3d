"""One exchange, request and answer, as an event for whoever records or counts them."""

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

_LONGEST: Final = 128
"""The most characters of an id or a method that somebody else chose."""


class Exchange(msgspec.Struct, frozen=True):
    """A call and its answer. What its properties return may be logged: no value that the caller sent is among it."""

    call: Call
    response: Response
    seconds: float | None = None
    """How long the answer took; None before it is complete."""
    replayed: bool = False
    """True if the answer is that of an earlier request with the same idempotency key."""

    @property
    def method(self) -> str:
        """The method in force."""
        return self.call.method[:_LONGEST]

    @property
    def template(self) -> str | None:
        """The path of the endpoint as its contract has it; None for a call that reached none."""
        route = self.call.route
        return None if route is None else route.endpoint.path

    @property
    def path(self) -> str:
        """The template; without one, the request's path with `*` for each part that no contract has.

        A part of a path can be a token or a name of a person, and a log is read by more people than a request.
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
        """The face the request came by, `agtp` or `http`."""
        return self.call.request.connection.face

    @property
    def refusal(self) -> str | None:
        """The code of the refusal; None for an answer."""
        return self.response.code

    @property
    def claimed_agent_id(self) -> str | None:
        """The id a caller claimed that was refused before it was known who calls."""
        if self.call.principal.agent_id is not None:
            return None
        claimed = self.call.request.headers.get(AGENT_ID)
        # A text that is not an id might be a secret.
        return claimed if claimed is not None and is_canonical_id(claimed) else None

    @property
    def caller(self) -> str:
        """The caller, in words."""
        claimed = self.claimed_agent_id
        return self.call.agent_id or ("nobody" if claimed is None else f"somebody who claims to be {claimed}")

    @property
    def particulars(self) -> dict[str, Any]:
        """The members of a log entry."""
        principal = self.call.principal
        return {
            **_ids(self.response.headers),
            "agent_id": principal.agent_id,
            # Core 10.1: an agent is logged with the principal it was found to act for.
            "principal_id": principal.principal_id and principal.principal_id[:_LONGEST],
            "claimed_agent_id": self.claimed_agent_id,
            "method": self.method,
            "path": self.path,
            "status": self.response.status,
            "peer": self.call.request.connection.peer,
        }


Subscriber = Callable[[Exchange], None]
"""Called with every exchange once its answer is complete. It must not raise, and must not wait."""


def particulars_of_fault(connection: Connection, status: int, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the members of a log entry about bytes that were not a request."""
    return {**_ids(headers), "status": status, "peer": connection.peer}


def _ids(headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    return {_ECHOED[name]: value[:_LONGEST] for name, value in headers if name in _ECHOED}
