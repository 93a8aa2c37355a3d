"""An agent with a document on this server: its genesis, identity, trust, authority and consent (core 7).

The id of an agent is the SHA-256 of its genesis without `signature` and `agent_id`: UTF-8 JSON, members sorted by
name, no white space. The same bytes are signed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

GENESIS_VERSION: Final = "agtp-genesis/1"
ARCHETYPES: Final = ("assistant", "analyst", "executor", "orchestrator", "monitor")
"""Kind of agent: informative, not a permission."""
_NOT_SIGNED: Final = frozenset({"signature", "agent_id"})
_SORTED: Final = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Genesis:
    """A record with valid fields, id and signature. It does not say whether its issuer is trusted."""

    agent_id: str
    name: str
    owner: str
    owner_id: str
    principal_id: str
    archetype: str
    governance_zone: str
    scopes: tuple[str, ...]
    issued_at: str
    issuer: str
    issuer_key: Mapping[str, str]  # public key of the issuer, as the members of a JWK with its `kid`
    public_key: Mapping[str, str] | None
    """Public key of the agent in the same form; None for an agent that does not sign."""
    trust_tier: int
    verification_path: str
    document: Mapping[str, Any] = field(repr=False)  # whole record as read


def canonical_genesis(record: Mapping[str, Any]) -> bytes:
    return _SORTED.encode({name: value for name, value in record.items() if name not in _NOT_SIGNED})


def genesis_id(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_genesis(record)).hexdigest()


VERIFIED: Final = 1
ORG_ASSERTED: Final = 2
EXPERIMENTAL: Final = 3
TIERS: Final = (VERIFIED, ORG_ASSERTED, EXPERIMENTAL)  # trust tiers: a lower number means stronger trust
ANCHORED: Final = ("dns-anchored", "log-anchored", "hybrid")
"""Verification paths with a proof; the first tier needs one of them."""
SELF_SIGNED: Final = "self-signed"
VERIFICATION_PATHS: Final = (*ANCHORED, "org-asserted", SELF_SIGNED)
UNVERIFIED: Final = "verification-incomplete"  # trust warning of the second tier


def trust_fault(tier: int, path: str | None) -> str | None:
    """Return why a tier and a verification path do not fit together, or None."""
    if tier == VERIFIED and path not in ANCHORED:
        said = f"the path is {path!r}" if path else "none is given"
        return f"trust tier 1 is for identities verified by {', '.join(ANCHORED)}; {said}"
    return None


def is_discoverable(tier: int | None) -> bool:
    """Return True if an agent may be shown to the public; experimental ones may not."""
    return tier != EXPERIMENTAL


DISCLOSURES: Final = ("public", "authenticated", "private")
"""Audiences that may see which agents a server hosts (AGTP-API 8.5)."""
ACTIVE: Final = "active"
STATUSES: Final = (ACTIVE, "suspended", "retired", "deprecated", "pending")
"""Lifecycle states (core 7.4) in the later spelling. Earlier drafts say Revoked for retired."""
_NO_LABEL: Final = re.compile(r"[^A-Za-z0-9_-]+")
UNREADABLE: Final = "unreadable"
"""Status of an agent with a broken document: its id is reserved, but it is never admitted."""
DEFAULT_ZONE: Final = "default"  # governance zone of agents whose documents name none; agents of every zone may find it


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent identity document, with the fields the runtime needs."""

    agent_id: str
    name: str
    description: str = ""
    status: str = ACTIVE
    scopes: tuple[str, ...] = ()
    """Authority granted to the agent; an Authority-Scope header may narrow it, never widen it."""
    methods: tuple[str, ...] = ()
    wildcards: bool = False
    trust_tier: int | None = None
    """Trust tier: 1 verified, 2 asserted by its organisation, 3 experimental; None if the document does not say."""
    verification_path: str | None = None
    trust_score: float | None = None  # trust score from 0 to 1; None if unknown
    principal: str = ""  # principal it acts for, as a display name
    principal_id: str | None = None
    owner_id: str | None = None
    issuer: str = ""
    issued_at: str | None = None
    updated_at: str | None = None
    successor: str | None = None  # successor of a deprecated agent
    delegation_permitted: bool | None = None
    max_delegation_depth: int | None = None
    public_key: Mapping[str, str] | None = None  # Ed25519 key it signs with, as the members of a JWK with its `kid`
    genesis: Genesis | None = None  # Agent Genesis if the document carries it; the id is then derived from it
    document: Mapping[str, Any] = field(default_factory=dict)  # whole identity document as read

    @property
    def label(self) -> str:
        """Name in the form that URIs take, `agtp://host/agents/<label>`: letters, digits, `-` and `_` (core 3)."""
        return _NO_LABEL.sub("-", self.name).strip("-")[:64] or self.agent_id

    @property
    def governance_zone(self) -> str:
        """Zone that governs the agent, by its document or its genesis."""
        said = self.document.get("governance_zone") or (self.genesis and self.genesis.governance_zone)
        return said if isinstance(said, str) else DEFAULT_ZONE

    @property
    def is_active(self) -> bool:
        return self.status == ACTIVE

    @property
    def is_discoverable(self) -> bool:
        """True if the agent is public: active and not experimental (core 7.4)."""
        return self.is_active and is_discoverable(self.trust_tier)

    def reference(self) -> dict[str, Any]:
        return {"agent_id": self.agent_id, "name": self.name, "description": self.description}
