"""An agent the server has a document of: its identity, its authority, its consent (core 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DISCLOSURES: Final = ("public", "authenticated", "private")
"""AGTP-API 8.5: who may see which agents a server hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent identity document, with the fields the runtime needs read out of it."""

    agent_id: str
    name: str
    description: str = ""
    status: str = "active"
    scopes: tuple[str, ...] = ()
    """The authority granted to the agent; an Authority-Scope header may narrow it, never widen it."""
    methods: tuple[str, ...] = ()
    wildcards: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)
    """The whole identity document as it was read."""

    def reference(self) -> dict[str, Any]:
        """The entry in a manifest's `hosted_agents`."""
        return {"agent_id": self.agent_id, "name": self.name, "description": self.description}
