"""What credentials prove: the authenticated agent, and marks that show whether two credentials have one key."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Refused


class Authenticated(msgspec.Struct, frozen=True, cache_hash=True):
    """An agent that has proven its identity. A remembered proof returns the same object, which is cheap to look up."""

    agent_id: str
    modes: tuple[str, ...]  # proofs: `mtls`, `token` or `key`, `signed`, in this order
    scopes: Scopes | None = None  # authority of the credential; None if no credential states any
    principal_id: str | None = None  # principal on whose behalf the agent acts, if a credential names one
    tls_identity: str | None = None  # SHA-256 of the client certificate, in hexadecimal digits
    expires_at: float | None = None  # expiry of the first credential to end, in seconds since 1970
    holders: tuple[str, ...] = ()  # subject of the token, key of the certificate: agents that share one are in one hand
    nonce: str | None = None  # Nonce of a signed request. Only the store knows whether it was used before.
    nonce_expires_at: float | None = None  # time until which the nonce has to be remembered
    key_id: str | None = None  # id of the API key

    def __repr__(self) -> str:
        # A nonce has no place in logs.
        return f"Authenticated(agent_id={self.agent_id!r}, modes={self.modes!r})"

    @property
    def verified(self) -> str:
        """Proofs joined into one word, as a principal carries them."""
        return "+".join(self.modes)


class Outdated(msgspec.Struct, frozen=True):
    """The known keys are not sufficient and newer ones may be: `refresh` the authenticator and retry once."""

    refused: Refused  # refusal to send if the retry fails or is not possible


# RFC 8410 4: the algorithm Ed25519, then the 32 bytes of the key.
_ED25519: Final = bytes.fromhex("302a300506032b6570032100")


def key_mark(spki: bytes) -> str:
    """Return the mark of a key, given as DER SubjectPublicKeyInfo."""
    return f"key:{sha256(spki).hexdigest()}"


def ed25519_mark(raw: bytes) -> str:
    """Return the mark of an Ed25519 key, given as its 32 bytes."""
    return key_mark(_ED25519 + raw)
