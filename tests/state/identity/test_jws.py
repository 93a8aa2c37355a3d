"""Compact JWS by Ed25519: readable by any JOSE library, and one text for one value."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from joserfc.jws import deserialize_compact, serialize_compact

from bespeak.protocol.exchange.base64url import decode64, encode64
from bespeak.state.identity.jws import is_signed, sign_compact, sign_detached

KEY = Ed25519PrivateKey.generate()
JOSE = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": encode64(KEY.public_key().public_bytes_raw()).decode()})


def test_signature_verifies_with_another_jose_library() -> None:
    token = sign_compact({"alg": "Ed25519", "typ": "x"}, b"content", KEY)
    read = deserialize_compact(token, JOSE, algorithms=["Ed25519"])
    assert (read.payload, read.headers()) == (b"content", {"alg": "Ed25519", "typ": "x"})


def test_signature_by_another_jose_library_is_accepted() -> None:
    other = OKPKey.generate_key("Ed25519")
    protected, _, signature = serialize_compact({"alg": "Ed25519"}, b"content", other, algorithms=["Ed25519"]).split(
        "."
    )
    assert isinstance(other.public_key, type(KEY.public_key()))
    assert is_signed(protected, b"content", signature, other.public_key)
    assert not is_signed(protected, b"other", signature, other.public_key)
    assert not is_signed(protected, b"content", signature, KEY.public_key())


def test_a_detached_token_leaves_its_content_out() -> None:
    protected, nothing, signature = sign_detached({"alg": "Ed25519"}, b"content", KEY).split(".")
    assert nothing == ""
    assert json.loads(decode64(protected) or b"") == {"alg": "Ed25519"}
    assert is_signed(protected, b"content", signature, KEY.public_key())


@given(st.text(max_size=90), st.text(max_size=90))
def test_random_text_is_not_a_valid_signature(protected: str, signature: str) -> None:
    assert not is_signed(protected, b"content", signature, KEY.public_key())
