"""An agent the server has a document of: its identity, its authority, its consent (core 7.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.genesis import Genesis
from bespeak.contract.trust import is_discoverable

DISCLOSURES: Final = ("public", "authenticated", "private")
"""AGTP-API 8.5: who may see which agents a server hosts."""

ACTIVE: Final = "active"
STATUSES: Final = (ACTIVE, "suspended", "retired", "deprecated", "pending")
"""Core 7.4, in the later spelling. The earlier drafts say Revoked for retired."""

_NO_LABEL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_LABEL: Final = 64

UNREADABLE: Final = "unreadable"
"""The status of an agent whose document is broken: it is known, so that nobody can pass for it, and never admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent identity document, with the fields the runtime needs read out of it."""

    agent_id: str
    name: str
    description: str = ""
    status: str = ACTIVE
    scopes: tuple[str, ...] = ()
    """The authority granted to the agent; an Authority-Scope header may narrow it, never widen it."""
    methods: tuple[str, ...] = ()
    wildcards: bool = False
    trust_tier: int | None = None
    """1 verified, 2 asserted by its organisation, 3 experimental; None where the document does not say."""
    verification_path: str | None = None
    trust_score: float | None = None
    """From 0 to 1; None where nobody has worked it out."""
    principal: str = ""
    """On whose behalf it acts, for people."""
    principal_id: str | None = None
    owner_id: str | None = None
    issuer: str = ""
    issued_at: str | None = None
    updated_at: str | None = None
    successor: str | None = None
    """The agent to turn to instead, of one that is deprecated."""
    delegation_permitted: bool | None = None
    max_delegation_depth: int | None = None
    public_key: Mapping[str, str] | None = None
    """The Ed25519 key it signs with, as the members of a JWK with its `kid`."""
    genesis: Genesis | None = None
    """The record it began with, if the document carries it; then the id is the one this record gives."""
    document: Mapping[str, Any] = field(default_factory=dict)
    """The whole identity document as it was read."""

    @property
    def label(self) -> str:
        """The name in the form that URIs take, `agtp://host/agents/<label>`: letters, digits, `-` and `_` (core 3)."""
        return _NO_LABEL.sub("-", self.name).strip("-")[:_LONGEST_LABEL] or self.agent_id

    @property
    def is_active(self) -> bool:
        """Whether the agent may act."""
        return self.status == ACTIVE

    @property
    def is_discoverable(self) -> bool:
        """Whether the public may learn of the agent: it is active, and no experiment (core 7.4)."""
        return self.is_active and is_discoverable(self.trust_tier)

    def reference(self) -> dict[str, Any]:
        """The entry in a manifest's `hosted_agents`."""
        return {"agent_id": self.agent_id, "name": self.name, "description": self.description}
