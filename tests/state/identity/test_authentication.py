"""What came of the credentials, as a value."""

from __future__ import annotations

from tests.state.identity.issuer import AGENT

from bespeak.state.identity.credentials import Authenticated


def test_several_proofs_are_joined_in_one_word() -> None:
    assert Authenticated(AGENT, ("token",)).verified == "token"
    assert Authenticated(AGENT, ("mtls", "signed")).verified == "mtls+signed"


def test_a_nonce_is_not_shown() -> None:
    assert "secret-nonce" not in repr(Authenticated(AGENT, ("signed",), nonce="secret-nonce"))
