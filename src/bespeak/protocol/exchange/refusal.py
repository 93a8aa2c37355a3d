"""A refusal by a gate or a binding: a value with its status and what the agent needs to recover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.protocol import status


class Refused(msgspec.Struct, frozen=True):
    """The reason why a request was not carried out."""

    status: int
    code: str
    """Machine-readable code, such as `method-violation`."""
    message: str
    """Message for people: what is wrong, the value, and what to do."""
    details: Mapping[str, Any] = {}
    """Further members of the `error` object."""
    headers: tuple[tuple[str, str], ...] = ()


def authorization_required(condition: str, message: str, **details: Any) -> Refused:
    """Return a 262 for a missing credential, scope or consent; `condition` says which (AGTP-API 11)."""
    return Refused(status.AUTHORIZATION_REQUIRED, "authorization-required", message, {"type": condition, **details})


def unauthorized(code: str, message: str, **details: Any) -> Refused:
    """Return a 401 for a credential that is missing or not valid."""
    return Refused(status.UNAUTHORIZED, code, message, details)


def unprocessable(code: str, message: str) -> Refused:
    """Return a 422 for values that break a rule."""
    return Refused(status.UNPROCESSABLE, code, message)
