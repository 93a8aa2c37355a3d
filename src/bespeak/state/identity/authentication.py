"""What came of looking at the credentials of a request."""

from __future__ import annotations

import msgspec

from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import Scopes


class Authenticated(msgspec.Struct, frozen=True, cache_hash=True):
    """An agent that has proven who it is. A proof that is remembered is the same object again, and cheap to look up."""

    agent_id: str
    modes: tuple[str, ...]
    """How: `mtls`, `token`, `signed`, in this order."""
    scopes: Scopes | None = None
    """The authority its credential gives; None when no credential says anything about it."""
    principal_id: str | None = None
    """On whose behalf it acts, if a credential says."""
    tls_identity: str | None = None
    """SHA-256 of its certificate, in hexadecimal digits."""
    expires_at: float | None = None
    """When the first of its credentials ends, in seconds since 1970."""
    nonce: str | None = None
    """Of a signed request. Only the store can tell whether it was used before."""
    nonce_expires_at: float | None = None
    """Until when the nonce has to be remembered."""

    def __repr__(self) -> str:
        # A nonce has no place in logs.
        return f"Authenticated(agent_id={self.agent_id!r}, modes={self.modes!r})"

    @property
    def verified(self) -> str:
        """The proofs as one word, as a principal carries it."""
        return "+".join(self.modes)


class Outdated(msgspec.Struct, frozen=True):
    """The keys at hand do not suffice, and newer ones may: `refresh` the authenticator and ask it once more."""

    refused: Refused
    """The answer if that changes nothing, or nobody can wait for it."""
