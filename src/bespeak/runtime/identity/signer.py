"""The signing key of a server. Cryptography is loaded when something is signed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from bespeak.errors import ConfigError

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.identity.jws import PrivateKey


class Signer:
    """Signs the documents and delegations of one server."""

    def __init__(self, key: OKPKey) -> None:
        from bespeak.state.identity.jws import PrivateKey  # noqa: PLC0415 - loads cryptography, for signers only

        private = key.private_key
        if not isinstance(private, PrivateKey):
            raise ConfigError("The signing key is a public key; signing requires the private key.")
        self._key = key
        self.private_key: PrivateKey = private

    @cached_property
    def key_id(self) -> str:
        """Id by which verifiers find the key."""
        from bespeak.state.identity.key_text import key_id  # noqa: PLC0415 - slow to load

        return key_id(self._key)

    def sign(self, content: bytes) -> str:
        """Return a detached JWS of canonical bytes."""
        from bespeak.documents.projections.manifest_signature import sign_content  # noqa: PLC0415 - slow to load

        return sign_content(content, self._key)

    def sign_manifest(self, manifest: dict[str, Any]) -> None:
        """Add its signature to a manifest."""
        from bespeak.documents.projections import manifest_signature as jws  # noqa: PLC0415 - slow to load

        manifest[jws.SIGNATURE_MEMBER] = jws.sign_manifest(manifest, self._key)
