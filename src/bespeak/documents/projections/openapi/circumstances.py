"""How a service is served, as far as it decides what a call needs and what it may be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.rate import RateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is not in the contract of an endpoint, and the same for all of them."""

    modes: tuple[str, ...]
    """The ways by which callers prove who they are, as in `[auth]`."""
    policies: Policies
    rate_limits: RateLimits = field(default_factory=RateLimits)
    knows_agents: bool = False
    """Whether there may be agents with documents, which can be suspended or revoked."""
    keeps_state: bool = True
    """Whether idempotency keys, sessions and confirmations have a store."""
    keys_required: bool = False
    """Whether what cannot be undone is called with an Idempotency-Key or not at all."""
    catalog_warnings: Mapping[str, str] = field(default_factory=dict)
    """Methods that the catalog has deprecated, each with its warning."""

    @property
    def is_open(self) -> bool:
        """Whether headers are believed without proof."""
        return self.modes == ("open",)

    def needs_authority(self, endpoint: Endpoint) -> bool:
        """Whether an anonymous call is refused."""
        return bool(endpoint.required_scopes) or self.policies.scope_required_for_invocation

    def confirms(self, endpoint: Endpoint) -> bool:
        """Whether a call waits for somebody's word."""
        return needs_confirmation(endpoint, self.policies)

    def takes_key(self, endpoint: Endpoint) -> bool:
        """Whether an Idempotency-Key is of use."""
        semantic = endpoint.semantic
        return self.keeps_state and semantic.impact != "informational" and not semantic.is_idempotent

    def needs_key(self, endpoint: Endpoint) -> bool:
        """Whether a call without an Idempotency-Key is refused."""
        return self.keys_required and self.takes_key(endpoint) and endpoint.semantic.impact == "irreversible"
