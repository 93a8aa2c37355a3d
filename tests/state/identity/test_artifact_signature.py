"""Signatures of ontologies and alignments name the exact content."""

from __future__ import annotations

from base64 import urlsafe_b64decode as b64decode

import msgspec
import pytest

from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity import signed_document
from bespeak.state.identity.jws import PrivateKey, generate_key, key_id, sign_compact
from bespeak.state.identity.key_files import trusted

KEY, OTHER = generate_key(), generate_key()
STATEMENT = signed_document.ArtifactStatement("ontology", "https://ex.org/onto/cs", "1.0", "ab" * 32)


def private() -> PrivateKey:
    assert isinstance(KEY.private_key, PrivateKey)
    return KEY.private_key


TOKEN = signed_document.sign_artifact(STATEMENT, private(), key_id(KEY), 1_790_000_000.0)


def test_signature_of_a_trusted_key_is_verified() -> None:
    assert signed_document.verify_artifact(TOKEN, STATEMENT, trusted([KEY])) == key_id(KEY)
    assert b"2026-09-21T14:13:20Z" in b64decode(TOKEN.split(".")[1] + "==")


@pytest.mark.parametrize("field", ["kind", "id", "version", "sha256"])
def test_signature_of_other_content_does_not_fit(field: str) -> None:
    other = msgspec.structs.replace(STATEMENT, **{field: "other"})
    fault = signed_document.verify_artifact(TOKEN, other, trusted([KEY]))
    assert isinstance(fault, Fault)
    assert fault.at == field


def test_foreign_changed_and_malformed_tokens_are_faults() -> None:
    head, body, sealed = TOKEN.split(".")
    header = {"alg": "EdDSA", "kid": key_id(KEY), "typ": "agtp-signed+json"}
    record = sign_compact(header, b'{"agtp_signed":{}}', private())
    changed = (f"{head}.{body}.{sealed[::-1]}", f"{head}.{head}.{sealed}", f"{record.split('.')[0]}.{body}.{sealed}")
    for token in ("", "a.b", "a.b.c", record, "x" * 20_000, *changed):
        assert isinstance(signed_document.verify_artifact(token, STATEMENT, trusted([KEY])), Fault), token
    fault = signed_document.verify_artifact(TOKEN, STATEMENT, trusted([OTHER]))
    assert isinstance(fault, Fault)
    assert fault.message.endswith("which is not trusted")
