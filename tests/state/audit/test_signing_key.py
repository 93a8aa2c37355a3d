"""The key of a server as records need it."""

from __future__ import annotations

import pytest
from joserfc.jwk import OKPKey

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import encode_header, parse_compact
from bespeak.state.identity.key_files import SigningKey, check_signature, trusted
from bespeak.state.identity.key_text import generate_key, key_id, private_text, public_jwk


def test_signature_verifies_with_the_public_half_and_names_the_key() -> None:
    key = generate_key()
    signing = SigningKey(key)
    token = signing.sign(encode_header(signing.header("JWT")) + encode64(b"{}")).decode()
    compact = parse_compact(token)
    assert compact is not None
    assert (compact.header["alg"], compact.header["typ"], compact.key_id) == ("EdDSA", "JWT", key_id(key))
    assert check_signature(compact, trusted([key])) == "good"


def test_a_public_key_cannot_sign() -> None:
    public = OKPKey.import_key(dict(public_jwk(generate_key())))
    with pytest.raises(ConfigError, match="only a public key"):
        SigningKey(public)


def test_its_repr_shows_no_secret() -> None:
    key = generate_key()
    assert repr(SigningKey(key)) == f"SigningKey({key_id(key)})"
    assert private_text(key).splitlines()[1] not in repr(SigningKey(key))
