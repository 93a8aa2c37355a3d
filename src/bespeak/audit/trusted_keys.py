"""The public keys that records may be signed with: the server's own, and those it had before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from bespeak.documents.key_text import KeyFault, key_id, parse_jwk, parse_key
from bespeak.identity.jws import PublicKey

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

TrustedKeys: TypeAlias = Mapping[str, PublicKey]
"""Public keys by their ids."""

_MOST: Final = 1000


def trusted(keys: Iterable[OKPKey]) -> dict[str, PublicKey]:
    """Keys by their ids. The id is made of the key itself, so a file cannot give one key the name of another."""
    found: dict[str, PublicKey] = {}
    for key in keys:
        public = key.public_key
        assert isinstance(public, PublicKey)
        found[key_id(key)] = public
    return found


def parse_keys(text: str) -> dict[str, PublicKey] | KeyFault:
    """The Ed25519 keys in a text: a JWK set, one JWK, PEM, or the bytes of a public key in base64url."""
    document = _set(text)
    if document is None:
        key = parse_key(text)
        return key if isinstance(key, KeyFault) else trusted([key])
    found = list(_of_set(document))
    faults = [entry for entry in found if isinstance(entry, KeyFault)]
    usable = [entry for entry in found if not isinstance(entry, KeyFault)]
    if not usable:
        return faults[0] if faults else KeyFault("the key set is empty")
    return trusted(usable)


def _set(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    members = document.get("keys")
    return members[:_MOST] if isinstance(members, list) else None


def _of_set(members: list[Any]) -> Iterator[OKPKey | KeyFault]:
    for entry in members:
        # A set may hold keys for other purposes, of other kinds.
        yield parse_jwk(entry) if isinstance(entry, dict) else KeyFault("a key that is no object")
