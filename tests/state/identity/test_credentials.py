"""What came of the credentials, as a value."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.state.identity.issuer import AGENT

from bespeak.state.identity.credentials import Authenticated, ed25519_mark, key_mark


def test_several_proofs_are_joined_in_one_word() -> None:
    assert Authenticated(AGENT, ("token",)).verified == "token"
    assert Authenticated(AGENT, ("mtls", "signed")).verified == "mtls+signed"


def test_a_nonce_is_not_shown() -> None:
    assert "secret-nonce" not in repr(Authenticated(AGENT, ("signed",), nonce="secret-nonce"))


def test_raw_key_and_its_certificate_form_have_the_same_mark() -> None:
    one, other = (Ed25519PrivateKey.generate().public_key() for _ in range(2))
    spki = one.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert ed25519_mark(one.public_bytes_raw()) == key_mark(spki)
    assert ed25519_mark(other.public_bytes_raw()) != key_mark(spki)
