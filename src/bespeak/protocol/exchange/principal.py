"""Principal: the calling agent, its authority and how both were verified."""

from __future__ import annotations

import re

import msgspec

from bespeak.protocol.exchange.scope import NO_SCOPES, Scopes

_CANONICAL = re.compile(r"[0-9a-f]{64}")


def is_canonical_id(agent_id: str) -> bool:
    """Test for a canonical Agent-ID: 64 lower-case hexadecimal digits (core 7.1)."""
    return _CANONICAL.fullmatch(agent_id) is not None


class Principal(msgspec.Struct, frozen=True):
    """The caller, as verified by the server."""

    agent_id: str | None = None
    """Agent-ID of the caller; None for an anonymous call."""
    scopes: Scopes = NO_SCOPES
    """Scopes in force for this request."""
    wildcards: bool = False
    """True if the agent consents to ad-hoc invocations."""
    known: bool = False
    """True if the server has an identity document of this agent."""
    verified: str | None = None
    """Proof of the Agent-ID: `token`, `mtls` or `signed`; None if it was only asserted in a header."""
    principal_id: str | None = None
    """Person or organisation the agent acts for, from its document or token."""
    trust_tier: int | None = None
    """Trust tier (core 7.4): 1 verified, 2 asserted by the organisation, 3 experimental."""
    tls_identity: str | None = None
    """SHA-256 of the client certificate; sessions are bound to it."""
    holders: tuple[str, ...] = ()
    """Subject and key of the credentials: agents that share one are in one hand."""
    delegators: tuple[str, ...] = ()
    """Chain of delegators, first to last; empty if the agent uses its own authority."""
    expires: float | None = None
    """End of the first of its credentials and delegations to end, in seconds since 1970; None if none of them ends."""


ANONYMOUS = Principal()
