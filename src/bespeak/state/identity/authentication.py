"""The result of checking a request's credentials."""

from __future__ import annotations

import msgspec

from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import Scopes


class Authenticated(msgspec.Struct, frozen=True, cache_hash=True):
    """An agent that has proven its identity. A remembered proof returns the same object, which is cheap to look up."""

    agent_id: str
    modes: tuple[str, ...]
    """Proofs: `mtls`, `token`, `signed`, in this order."""
    scopes: Scopes | None = None
    """Authority of the credential; None if no credential states any."""
    principal_id: str | None = None
    """Principal on whose behalf the agent acts, if a credential names one."""
    tls_identity: str | None = None
    """SHA-256 of the client certificate, in hexadecimal digits."""
    expires_at: float | None = None
    """Expiry of the first credential to end, in seconds since 1970."""
    holders: tuple[str, ...] = ()
    """Subject of the token and key of the certificate: agents that share one are in one hand."""
    nonce: str | None = None
    """Nonce of a signed request. Only the store knows whether it was used before."""
    nonce_expires_at: float | None = None
    """Time until which the nonce has to be remembered."""

    def __repr__(self) -> str:
        # A nonce has no place in logs.
        return f"Authenticated(agent_id={self.agent_id!r}, modes={self.modes!r})"

    @property
    def verified(self) -> str:
        """Proofs joined into one word, as a principal carries them."""
        return "+".join(self.modes)


class Outdated(msgspec.Struct, frozen=True):
    """The known keys are not sufficient and newer ones may be: `refresh` the authenticator and retry once."""

    refused: Refused
    """Refusal to send if the retry fails or is not possible."""
