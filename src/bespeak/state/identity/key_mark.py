"""Marks of public keys, by which two credentials of one key are recognised, whatever form they have."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

# RFC 8410 4: the algorithm Ed25519, then the 32 bytes of the key.
_ED25519: Final = bytes.fromhex("302a300506032b6570032100")


def key_mark(spki: bytes) -> str:
    """Return the mark of a key, given as DER SubjectPublicKeyInfo."""
    return f"key:{sha256(spki).hexdigest()}"


def ed25519_mark(raw: bytes) -> str:
    """Return the mark of an Ed25519 key, given as its 32 bytes."""
    return key_mark(_ED25519 + raw)
