"""The Agent Genesis: the signed record from which an agent's id is derived (core 7.1, 7.2).

The id is the SHA-256 of the canonical form: the record without `signature`, as UTF-8 JSON, members sorted by name, no
white space. The same bytes are signed. A record may repeat the id as `agent_id`; because no hash can contain itself,
that member is also left out of the canonical form.
"""

from __future__ import annotations

import hashlib
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
    issuer_key: Mapping[str, str]
    """Public key of the issuer, as the members of a JWK with its `kid`."""
    public_key: Mapping[str, str] | None
    """Public key of the agent in the same form; None for an agent that does not sign."""
    trust_tier: int
    verification_path: str
    document: Mapping[str, Any] = field(repr=False)
    """Whole record as read."""


def canonical_genesis(record: Mapping[str, Any]) -> bytes:
    """Return the bytes that are hashed and signed."""
    return _SORTED.encode({name: value for name, value in record.items() if name not in _NOT_SIGNED})


def genesis_id(record: Mapping[str, Any]) -> str:
    """Return the canonical Agent-ID of a record."""
    return hashlib.sha256(canonical_genesis(record)).hexdigest()
