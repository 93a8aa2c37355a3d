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
    """A named business error with a description for people."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One (method, path) of a service. Immutable; `lint` decides whether it is valid."""

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
    """Maximum cost of a call; a caller's Budget-Limit is compared with it."""
    confirm: bool | None = None
    """True if a call needs a confirmation; None to follow `policies.confirm_irreversible`."""
    internal: bool = False
    """True if the endpoint is served but not published in any document."""
    since: str | None = None
    """Place of an item's change time in the output, `rooms[].updated_at`; `?since=` is compared with it."""
    builtin: bool = False
    """True if registered by bespeak itself; an operator's endpoint on the same pair replaces it (AGTP-API 5.8)."""
    location: Location | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the endpoint: method and path."""
        return (self.method, self.path)

    @property
    def is_listed(self) -> bool:
        """True if documents list it: it is the operator's own and not internal."""
        return not (self.builtin or self.internal)

    @property
    def error_names(self) -> tuple[str, ...]:
        """Declared error names, in order."""
        return tuple(error.name for error in self.errors)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
