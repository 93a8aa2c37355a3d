"""Refusals of tool calls for models: what was wrong, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.compile import Validator
from bespeak.contract.schema.report import refuse_input
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused

_UNREAD: Final = frozenset({"method", "path", "confirm_with", "retry_with", "digest"})
"""Members of an error that only callers over AGTP can use."""


@dataclass(frozen=True, slots=True)
class Granting:
    """How a user gives authority to the client of a model, in words."""

    scopes: Callable[[Sequence[str]], str]
    """Says how to grant scopes."""
    identity: str
    """Says how to give an identity and scopes."""


def check_arguments(endpoint: Endpoint, validator: Validator | None, arguments: dict[str, Any]) -> Outcome | None:
    """Refuse arguments that break the contract or are unknown to it; return None if they are valid."""
    try:
        if validator is None or validator.is_valid(arguments):
            return None
        return refused(refuse_input(endpoint.method, endpoint.path, validator.violations(arguments)))
    except ValueError:
        return invalid_arguments("The arguments are nested too deeply or contain text that is not valid Unicode.")


def invalid_arguments(message: str) -> Outcome:
    """Refuse arguments that cannot be compared with the contract at all."""
    return refused(Refused(status.BAD_REQUEST, "invalid-arguments", message))


def error_members(endpoint: Endpoint, outcome: Outcome, granting: Granting) -> dict[str, Any]:
    """Return the members of a refusal that a model can act on: code, message, details and a remedy."""
    error = {name: value for name, value in outcome.error.items() if name not in _UNREAD}
    error.setdefault("remedy", _remedy(endpoint, outcome, granting))
    return error


def _remedy(endpoint: Endpoint, outcome: Outcome, granting: Granting) -> str:
    """Say what the caller can do about a refusal."""
    error: Mapping[str, Any] = outcome.error
    missing = error.get("missing_scopes")
    if isinstance(missing, list) and missing:
        return f"Ask the user to grant these scopes to this client; {granting.scopes(missing)}."
    if "violations" in error:
        names = ", ".join(endpoint.input_schema.get("properties", {}))
        return f"Correct the arguments and call again. They are: {names}." if names else "Call again without arguments."
    match outcome.status:
        case status.UNAUTHORIZED | status.AUTHORIZATION_REQUIRED:
            return f"Ask the user to give this client an identity and scopes; {granting.identity}."
        case status.RATE_LIMITED | status.UNAVAILABLE:
            when = f"in {outcome.retry_after} seconds" if outcome.retry_after else "later"
            return f"Call again {when}."
        case status.NOT_FOUND if error.get("code") == "endpoint-not-found":
            return "List the tools again: this one is no longer offered."
        case status.UNPROCESSABLE:
            return "Act on the message and its details, or call again with other arguments."
        case number if number >= status.SERVER_ERROR:
            return "Tell the user that the service failed. Repeat the call only if repeating does no harm."
        case _:
            return "Tell the user; the same call will be refused again."
