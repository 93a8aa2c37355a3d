"""What can be told of a request without telling a value that its caller sent, for the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.exchange.messages import Connection
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
"""Of an id or a method that somebody else chose."""


def particulars(call: Call, status: int, headers: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """Who asked for what and which ids the answer has. Of the path, only the parts that stand in contracts."""
    principal = call.principal
    claimed = call.request.headers.get(AGENT_ID) if principal.agent_id is None else None
    return {
        **_ids(headers),
        "agent_id": principal.agent_id,
        # Core 10.1: an agent is logged with the principal it was found to act for.
        "principal_id": principal.principal_id and principal.principal_id[:_LONGEST],
        # Who was refused before it was known who calls has only said so; an id tells nobody a secret.
        "claimed_agent_id": claimed if claimed is not None and is_canonical_id(claimed) else None,
        "method": call.method[:_LONGEST],
        "path": _known_path(call),
        "status": status,
        "peer": call.request.connection.peer,
    }


def caller_of(told: Mapping[str, Any]) -> str:
    """Who called, in words."""
    claimed = told["claimed_agent_id"]
    return told["agent_id"] or ("nobody" if claimed is None else f"somebody who claims to be {claimed}")


def particulars_of_fault(connection: Connection, status: int, headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The same for bytes that were no request."""
    return {**_ids(headers), "status": status, "peer": connection.peer}


def _ids(headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    return {_ECHOED[name]: value[:_LONGEST] for name, value in headers if name in _ECHOED}


def _known_path(call: Call) -> str:
    """The template of the endpoint; without one, the request's path with `*` for each part that no contract has.

    A part of a path can be a token or a name of a person, and a log is read by more people than a request.
    """
    if call.route is not None and call.route is not call.registry.wildcard:
        return call.route.endpoint.path
    words = call.registry.path_words
    parts = call.path[:2000].split("/")[:20]
    return "/".join(part if part in words else "*" for part in parts)
