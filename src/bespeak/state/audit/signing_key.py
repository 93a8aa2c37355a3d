"""The key that signs records and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.base64url import encode64
from bespeak.state.identity.jws import ALGORITHM, PrivateKey
from bespeak.state.identity.key_text import key_id

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey


class SigningKey:
    """A private key and its id."""

    __slots__ = ("_key", "kid")

    def __init__(self, key: OKPKey) -> None:
        private = key.private_key
        if not isinstance(private, PrivateKey):
            raise ConfigError("records are signed with a private Ed25519 key; this is only a public key")
        self._key = private
        self.kid = key_id(key)

    def __repr__(self) -> str:
        return f"SigningKey({self.kid})"

    def header(self, kind: str) -> dict[str, Any]:
        """Return the JWS header for this key."""
        return {"alg": ALGORITHM, "typ": kind, "kid": self.kid}

    def sign(self, content: bytes) -> bytes:
        """Append the signature to `content`, the encoded header and payload of a JWS."""
        return content + b"." + encode64(self._key.sign(content))
