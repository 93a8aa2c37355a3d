"""A refusal by a gate or a binding: a value with its status and what the agent needs to recover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.protocol import status


class Refused(msgspec.Struct, frozen=True):
    """Why a request was not carried out."""

    status: int
    code: str
    """The machine-readable name, `method-violation`."""
    message: str
    """For people: what is wrong, with the value, and what to do."""
    details: Mapping[str, Any] = {}
    """More members of the `error` object."""
    headers: tuple[tuple[str, str], ...] = ()


def authorization_required(condition: str, message: str, **details: Any) -> Refused:
    """262: a credential, a scope or a consent is missing; `condition` tells machines which (AGTP-API 11)."""
    return Refused(status.AUTHORIZATION_REQUIRED, "authorization-required", message, {"type": condition, **details})
