"""Settings of a server that decide what a call needs and how it may be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.rate import RateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Settings outside the contract that apply to all endpoints."""

    modes: tuple[str, ...]
    """Authentication modes, as in `[auth]`."""
    policies: Policies
    rate_limits: RateLimits = field(default_factory=RateLimits)
    knows_agents: bool = False
    """True if agents may have documents, and so be suspended or revoked."""
    keeps_state: bool = True
    """True if idempotency keys, sessions and confirmations have a store."""
    keys_required: bool = False
    """True if irreversible calls need an Idempotency-Key."""
    catalog_warnings: Mapping[str, str] = field(default_factory=dict)
    """Warnings by method, for methods that the catalog has deprecated."""

    @property
    def is_open(self) -> bool:
        """True if headers are accepted without proof."""
        return self.modes == ("open",)

    def needs_authority(self, endpoint: Endpoint) -> bool:
        """Return True if an anonymous call is refused."""
        return bool(endpoint.required_scopes) or self.policies.scope_required_for_invocation

    def confirms(self, endpoint: Endpoint) -> bool:
        """Return True if a call waits for a confirmation."""
        return needs_confirmation(endpoint, self.policies)

    def takes_key(self, endpoint: Endpoint) -> bool:
        """Return True if an Idempotency-Key has an effect."""
        semantic = endpoint.semantic
        return self.keeps_state and semantic.impact != "informational" and not semantic.is_idempotent

    def needs_key(self, endpoint: Endpoint) -> bool:
        """Return True if a call without an Idempotency-Key is refused."""
        return self.keys_required and self.takes_key(endpoint) and endpoint.semantic.impact == "irreversible"
