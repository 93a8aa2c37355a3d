"""Issuing and verifying an Agent Genesis."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.cases import rows

from bespeak.contract.agent import Genesis, genesis_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.genesis import issue_genesis, verify_genesis
from bespeak.state.identity.jws import generate_key, public_jwk

ISSUER = generate_key()
AGENT = generate_key()


def issue(**members: Any) -> Genesis | Refused:
    options: dict[str, Any] = {
        "name": "Porter",
        "owner": "Town Library",
        "issuer": "https://library.example",
        "key": ISSUER.private_key,
        "issued_at": "2026-02-01T08:00:00Z",
    }
    assert isinstance(ISSUER.private_key, Ed25519PrivateKey)
    return issue_genesis(**{**options, **members})


def issued(**members: Any) -> Genesis:
    genesis = issue(**members)
    assert isinstance(genesis, Genesis), genesis
    return genesis


@pytest.mark.requirement("CORE-7.1-1")
def test_issued_record_is_valid_and_gives_its_id() -> None:
    genesis = issued(public_key=public_jwk(AGENT), scopes=["b:c", "a:b"], archetype="monitor", owner_id="o-1")
    assert verify_genesis(genesis.document) == genesis
    assert genesis.agent_id == genesis_id(genesis.document)
    assert (genesis.public_key, genesis.scopes, genesis.principal_id) == (public_jwk(AGENT), ("a:b", "b:c"), "o-1")


@pytest.mark.requirement("CORE-7.2-1")
def test_a_record_has_the_fields_of_both_forms_and_no_private_key() -> None:
    record = issued(public_key=AGENT.as_dict(private=True), org_domain="library.example").document
    assert {"owner", "scope", "trust_tier", "verification_path", "archetype", "governance_zone"} <= set(record)
    assert {"issued_at", "signature", "issuer_public_key"} <= set(record)
    assert {"agtp_genesis_version", "name", "owner_id", "principal_id", "agent_public_key", "issuer"} <= set(record)
    assert record["org_domain"] == "library.example"
    assert str(AGENT.as_dict(private=True)["d"]) not in repr(record)
    assert "PRIVATE" not in repr(record)


@pytest.mark.requirement("CORE-7.1-3", "CORE-7.1-2", "CORE-7.2-2")
def test_every_record_has_its_own_id_and_is_refused_with_another_id_or_content() -> None:
    assert issued().agent_id != issued().agent_id
    for other in ({"agent_id": "0" * 64}, {"owner": "Somebody"}):
        refused = verify_genesis({**issued().document, **other})
        assert isinstance(refused, Refused)
        assert (refused.status, refused.code) == (422, "genesis-invalid")


@pytest.mark.requirement("CORE-7.2-3", "CORE-7.2-4")
@rows(
    "members",
    *({"trust_tier": 1}, {"trust_tier": 4}, {"archetype": "king"}, {"verification_path": "hearsay"}),
    *({"trust_tier": 1, "verification_path": "log-anchored"}, {"public_key": {"kty": "oct", "k": "x"}}),
)
def test_a_record_that_breaks_a_rule_is_not_issued(members: dict[str, Any]) -> None:
    refused = issue(**members)
    assert isinstance(refused, Refused)
    assert refused.code == "genesis-invalid"


@pytest.mark.requirement("CORE-7.2-3")
@pytest.mark.parametrize("archetype", ["assistant", "analyst", "executor", "orchestrator", "monitor"])
def test_each_archetype_of_the_draft_can_be_issued(archetype: str) -> None:
    assert issued(archetype=archetype).document["archetype"] == archetype


@pytest.mark.requirement("CORE-7.2-4")
def test_a_verified_record_is_issued_with_its_proof() -> None:
    genesis = issued(trust_tier=1, verification_path="log-anchored", log_inclusion_proof="p")
    assert (genesis.trust_tier, genesis.document["log_inclusion_proof"]) == (1, "p")


@pytest.mark.parametrize("record", [{}, {"signature": 1}, {"issuer_public_key": {"kty": "OKP"}, "signature": "x"}])
def test_other_input_is_refused(record: dict[str, Any]) -> None:
    assert isinstance(verify_genesis(record), Refused)
