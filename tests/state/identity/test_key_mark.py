"""A key has one mark, whether it is in a certificate or in an agent's document."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bespeak.state.identity.credentials import ed25519_mark, key_mark


def test_raw_key_and_its_certificate_form_have_the_same_mark() -> None:
    one, other = (Ed25519PrivateKey.generate().public_key() for _ in range(2))
    spki = one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert ed25519_mark(one.public_bytes_raw()) == key_mark(spki)
    assert ed25519_mark(other.public_bytes_raw()) != key_mark(spki)
