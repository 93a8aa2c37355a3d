"""Compact JWS by Ed25519: readable by any JOSE library, and one text for one value."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from joserfc.jws import deserialize_compact, serialize_compact

from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import Jws, is_signed, parse_jws, sign_compact, sign_detached

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


def test_detached_token_leaves_its_content_out_and_takes_it_in_place_of_the_payload() -> None:
    protected, nothing, signature = sign_detached({"alg": "Ed25519"}, b"content", KEY).split(".")
    assert nothing == ""
    assert json.loads(decode64(protected) or b"") == {"alg": "Ed25519"}
    assert is_signed(protected, b"content", signature, KEY.public_key())
    token = sign_detached({"alg": "EdDSA"}, b"content", KEY)
    read = parse_jws(token, longest=1000, content=b"content")
    assert isinstance(read, Jws)
    assert read.is_by(KEY.public_key())
    assert isinstance(parse_jws(token, longest=1000), Fault)


@given(st.text(max_size=90), st.text(max_size=90))
def test_random_text_is_not_a_valid_signature(protected: str, signature: str) -> None:
    assert not is_signed(protected, b"content", signature, KEY.public_key())


def test_what_was_signed_is_read_with_its_key_and_type() -> None:
    token = sign_compact({"alg": "EdDSA", "kid": "k", "typ": "t"}, b"{}", KEY)
    read = parse_jws(token, longest=len(token), typ="t")
    assert isinstance(read, Jws)
    assert (read.key_id, read.payload, read.is_by(KEY.public_key())) == ("k", b"{}", True)
    assert isinstance(parse_jws(token, longest=len(token) - 1), Fault)
    assert isinstance(parse_jws(token, longest=len(token), typ="other"), Fault)


@given(
    st.text(max_size=200)
    | st.from_regex(r"[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,60}\.[A-Za-z0-9_-]{0,90}", fullmatch=True)
)
def test_any_text_is_a_token_with_one_text_or_a_fault(text: str) -> None:
    read = parse_jws(text, longest=150, algorithms=None)
    assert isinstance(read, Fault) or ".".join(read.parts) == text
