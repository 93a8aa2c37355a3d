"""A signed document is read with the right key only, and a changed one not at all."""

from __future__ import annotations

from tests.cases import rows

from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.jws import generate_key, sign_compact
from bespeak.state.identity.key_files import trusted
from bespeak.state.identity.signed_document import SignedDocument, read_signed, write_signed

KEY = generate_key()
SIGNER = Signer(KEY)
DOCUMENT = SignedDocument({"a": 1}, "agent", "server", "2026-11-16T00:00:00Z")
TOKEN = write_signed(DOCUMENT, SIGNER.private_key, SIGNER.key_id, "EdDSA")
HEAD, CONTENT, SIGNATURE = TOKEN.split(".")
CHANGED = encode64(b'{"agtp_signed":{"payload":2,"agent_id":"","server_id":"","signed_at":""}}').decode()


def test_document_is_read_as_it_was_signed_and_not_with_another_key() -> None:
    assert read_signed(TOKEN, trusted([KEY])) == DOCUMENT
    assert isinstance(read_signed(TOKEN, trusted([generate_key()])), Fault)


@rows(
    "token",
    *("", "a.b", f"{HEAD}.{CONTENT}.{'B' if SIGNATURE[0] == 'A' else 'A'}{SIGNATURE[1:]}"),
    *(TOKEN.replace(".", "..", 1), f"{HEAD}.{CHANGED}.{SIGNATURE}"),
    sign_compact({"alg": "EdDSA", "kid": SIGNER.key_id, "typ": "JWT"}, b'{"sub":"x"}', SIGNER.private_key),
)
def test_anything_else_is_not_valid(token: str) -> None:
    assert isinstance(read_signed(token, trusted([KEY])), Fault)
