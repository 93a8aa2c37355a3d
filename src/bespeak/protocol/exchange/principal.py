"""Who calls: the agent, the authority it declares, and what it consented to."""

from __future__ import annotations

import re

import msgspec

from bespeak.protocol.exchange.scope import NO_SCOPES, Scopes

_CANONICAL = re.compile(r"[0-9a-f]{64}")


def is_canonical_id(agent_id: str) -> bool:
    """Whether the text is a canonical Agent-ID: 64 lower-case hexadecimal digits (core 7.1)."""
    return _CANONICAL.fullmatch(agent_id) is not None


class Principal(msgspec.Struct, frozen=True):
    """The caller as far as the server knows it."""

    agent_id: str | None = None
    """Canonical id, or None for an anonymous call."""
    scopes: Scopes = NO_SCOPES
    """The authority in force for this request."""
    wildcards: bool = False
    """The agent's own consent to ad-hoc invocations."""
    known: bool = False
    """Whether the id belongs to an agent this server has a document of; otherwise it is only asserted."""
    verified: str | None = None
    """How the id was proven: `token`, `mtls` or `signed`; None for a header that is merely believed."""
    principal_id: str | None = None
    """On whose behalf the agent acts, from its document or its token."""
    trust_tier: int | None = None
    """1 verified, 2 asserted by its organisation, 3 experimental (core 7.4): the lower, the stronger."""
    tls_identity: str | None = None
    """SHA-256 of the client's certificate, to which a session is bound."""
    delegators: tuple[str, ...] = ()
    """Whose authority the agent acts with, from the first delegator to the last; empty for its own."""


ANONYMOUS = Principal()
