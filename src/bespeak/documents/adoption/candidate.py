"""Facts an importer has about one callable of an upstream: an OpenAPI operation, an MCP tool, an A2A skill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing, if an upstream keeps to HTTP (RFC 9110 9.2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One callable that is to become an endpoint. Every field is the upstream's claim, not a fact."""

    name: str = ""
    """Identifier upstream: an operationId, the name of a tool without its service, the id of a skill."""
    full_name: str = ""
    """Whole identifier, if `name` is only a part of it."""
    name_kind: str = "the name"
    """Word for that identifier in the reasons of guesses."""
    method: str | None = None
    """HTTP method in capitals; None if the upstream is not called by HTTP methods."""
    path: str | None = None
    """Path as described, `/pets/{petId}`; None if the upstream has no paths."""
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    service: str = ""
    """First segment of its path, if the upstream has no paths but several services."""
    returns_list: bool = False
    """True if the output schema is a list."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the documented 4xx and 5xx statuses, by status: `404`, `4XX`."""
    successes: frozenset[str] = frozenset()
    """Documented 2xx statuses."""
    starts_job: bool = False
    """True if the answer names work that goes on after it: a job, a task."""
    has_readable_state: bool = False
    """True if another call returns the state that this one overwrites."""
    is_undone: bool = False
    """True if another call takes back what this one does: the DELETE beside a POST."""
    signs: tuple[str, ...] = ()
    """Reasons beside its words to believe that a call changes something: `its field 'action' may be 'delete'`."""
    program: str = ""
    """Field that holds a program, which may do anything: `sql`, `code`, `expression`."""
    read_only: bool | None = None
    """Hint of an upstream without methods (MCP `readOnlyHint`); None if it gives none."""
    destructive: bool | None = None
    """Hint `destructiveHint` of MCP."""
    idempotent: bool | None = None
    """Hint `idempotentHint` of MCP."""

    @property
    def claims_to_read(self) -> bool:
        """True if the method or the hints say that a call changes nothing."""
        return self.method in READING if self.method else self.read_only is True and self.destructive is not True

    @property
    def origin(self) -> str:
        """Name for a reader who knows the upstream: `GET /pets`, `list_pets`."""
        return f"{self.method} {self.path}" if self.method else self.full_name or self.name
