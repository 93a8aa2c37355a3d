"""The public keys that may sign records: the server's current and earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from bespeak.protocol.fault import Fault
from bespeak.state.identity.jws import PublicKey
from bespeak.state.identity.key_history import parse_history
from bespeak.state.identity.key_text import key_id, parse_key

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

TrustedKeys: TypeAlias = Mapping[str, PublicKey]
"""Public keys by id."""


def trusted(keys: Iterable[OKPKey]) -> dict[str, PublicKey]:
    """Index keys by id. The id derives from the key, so a file cannot rename a key."""
    found: dict[str, PublicKey] = {}
    for key in keys:
        public = key.public_key
        assert isinstance(public, PublicKey)
        found[key_id(key)] = public
    return found


def parse_keys(text: str) -> dict[str, PublicKey] | Fault:
    """Parse the Ed25519 keys in a text: a JWK set, one JWK, PEM, or a raw public key in base64url."""
    if '"keys"' in text:
        keys = parse_history(text)
        if isinstance(keys, Fault):
            return keys
        return trusted(one.key for one in keys) if keys else Fault("the key set is empty")
    key = parse_key(text)
    return key if isinstance(key, Fault) else trusted([key])
