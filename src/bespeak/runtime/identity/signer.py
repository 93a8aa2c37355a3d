"""The signing key of a server, and the file that has it. Cryptography is loaded when something is signed."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Fault

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.identity.jws import PrivateKey


class Signer:
    def __init__(self, key: OKPKey) -> None:
        from bespeak.state.identity.jws import PrivateKey  # noqa: PLC0415 - loads cryptography, for signers only

        private = key.private_key
        if not isinstance(private, PrivateKey):
            raise ConfigError("The signing key is a public key; signing requires the private key.")
        self._key = key
        self.private_key: PrivateKey = private

    @cached_property
    def key_id(self) -> str:
        from bespeak.state.identity.jws import key_id  # noqa: PLC0415 - slow to load

        return key_id(self._key)

    def sign(self, content: bytes) -> str:
        from bespeak.documents.projections.manifest_signature import sign_content  # noqa: PLC0415 - slow to load

        return sign_content(content, self._key)

    def sign_manifest(self, manifest: dict[str, Any]) -> None:
        from bespeak.documents.projections import manifest_signature as jws  # noqa: PLC0415 - slow to load

        manifest[jws.SIGNATURE_MEMBER] = jws.sign_manifest(manifest, self._key)


def signing_keys(path: Path | None) -> tuple[OKPKey, ...]:
    if path is None:
        return ()
    from bespeak.state.identity.key_files import read_history  # noqa: PLC0415 - slow to load, for signers

    key = signing_key(path)
    before = read_history(path, key)
    if isinstance(before, Fault):
        raise ConfigError(f"signing_key {path}: {before.message}")
    return (key, *(one.key for one in before))


def signing_key(path: Path) -> OKPKey:
    """Read the signing key, without the keys it replaced."""
    from bespeak.state.identity.key_files import read_key  # noqa: PLC0415 - slow to load, for signers

    key = read_key(path)
    if isinstance(key, Fault):
        raise ConfigError(f"signing_key {path}: {key.message}; `bespeak keys new --out FILE` makes one")
    return key
