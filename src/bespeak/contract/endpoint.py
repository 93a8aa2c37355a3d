"""The endpoint: a method on a path with everything an agent must know to call it (AGTP-API 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.contract.cost import Cost
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.handler import HandlerBinding
from bespeak.contract.semantic import Semantic
from bespeak.text.source.span import Location


@dataclass(frozen=True, slots=True)
class DeclaredError:
    """A named business error; the description is for people."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One (method, path) of a service. Frozen, and not checked by itself: `lint` says whether it is valid."""

    method: str
    path: str
    description: str
    semantic: Semantic
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    errors: tuple[DeclaredError, ...] = ()
    handler: HandlerBinding
    namespace: str | None = None
    required_scopes: tuple[str, ...] = ()
    deprecated: Deprecation | None = None
    cost: Cost | None = None
    """What a call costs at most; a caller's Budget-Limit is held against it."""
    confirm: bool | None = None
    """Whether a call waits for a confirmation; None leaves it to `policies.confirm_irreversible`."""
    internal: bool = False
    """Served, and named in no document that the server publishes."""
    since: str | None = None
    """Where the output says when an item changed, `rooms[].updated_at`: what `?since=` is held against."""
    builtin: bool = False
    """Registered by bespeak itself; an operator's endpoint on the same pair takes its place (AGTP-API 5.8)."""
    location: Location | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the endpoint."""
        return (self.method, self.path)

    @property
    def is_listed(self) -> bool:
        """Whether the documents about a service name it: it is the operator's own, and not internal."""
        return not (self.builtin or self.internal)

    @property
    def error_names(self) -> tuple[str, ...]:
        """The declared error names, in order."""
        return tuple(error.name for error in self.errors)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
