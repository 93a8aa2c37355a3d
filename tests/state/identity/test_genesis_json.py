"""Agent Genesis records: both forms are read, and invalid ones are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.agent import Genesis, canonical_genesis, genesis_id
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.identity.agent_json import genesis_of
from bespeak.state.identity.key_text import generate_key, public_jwk
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import json_table

ISSUER = generate_key()
AGENT = generate_key()
RAW = public_jwk(ISSUER)["x"]
PRIVATE = ISSUER.private_key
assert isinstance(PRIVATE, Ed25519PrivateKey)

REFERENCE: dict[str, Any] = {
    "agtp_genesis_version": "agtp-genesis/1",
    "name": "Porter",
    "owner_id": "library.example",
    "principal_id": "p-1",
    "agent_public_key": AGENT.as_pem(private=False).decode(),
    "archetype": "executor",
    "governance_zone": "zone:library",
    "trust_tier": 2,
    "verification_path": "self-signed",
    "issued_at": "2026-02-01T08:00:00Z",
    "issuer": "library.example",
    "issuer_public_key": ISSUER.as_pem(private=False).decode(),
}
DRAFT: dict[str, Any] = {
    "owner": "Town Library",
    "archetype": "analyst",
    "governance_zone": "zone:library",
    "scope": ["lending:read"],
    "issued_at": "2026-02-01T08:00:00Z",
    "certificate_hash": "00" * 32,
    "trust_tier": 1,
    "verification_path": "log-anchored",
    "log_inclusion_proof": {"log": "x"},
    "issuer_public_key": RAW,
}


def signed(record: dict[str, Any], **members: Any) -> dict[str, Any]:
    whole = {name: value for name, value in {**record, **members}.items() if value is not ...}
    assert isinstance(PRIVATE, Ed25519PrivateKey)
    return {"signature": encode64(PRIVATE.sign(canonical_genesis(whole))).decode(), **whole}


def parse_genesis(text: str, file: str) -> tuple[Genesis | None, list[Diagnostic]]:
    root = json_table(text.encode(errors="surrogatepass"), file)
    return (None, [root]) if isinstance(root, Diagnostic) else (genesis_of(root), root.findings.found)


def parse(record: object) -> tuple[Genesis | None, list[Diagnostic]]:
    return parse_genesis(json.dumps(record, indent=1), "a.genesis.json")


def test_a_record_of_the_reference_implementation_is_read() -> None:
    genesis, findings = parse(signed(REFERENCE))
    assert genesis is not None, findings
    assert findings == []
    assert genesis.agent_id == genesis_id(REFERENCE)
    assert (genesis.name, genesis.owner, genesis.owner_id) == ("Porter", "library.example", "library.example")
    assert (genesis.issuer_key, genesis.public_key) == (public_jwk(ISSUER), public_jwk(AGENT))


def test_a_record_of_the_draft_is_read() -> None:
    record = signed(DRAFT)
    genesis, findings = parse({**record, "agent_id": genesis_id(record)})
    assert genesis is not None, findings
    assert (genesis.owner, genesis.scopes, genesis.trust_tier) == ("Town Library", ("lending:read",), 1)
    assert (genesis.verification_path, genesis.public_key) == ("log-anchored", None)


def test_id_that_does_not_match_the_content_is_refused() -> None:
    genesis, (finding,) = parse({**signed(REFERENCE), "agent_id": "0" * 64})
    assert genesis is None
    assert (finding.rule, finding.pointer) == ("D197", "/agent_id")
    assert genesis_id(REFERENCE) in finding.message


@pytest.mark.requirement("CORE-7.2-2")
@pytest.mark.parametrize("signature", ["", "x", "A" * 86, "!" * 86, "A" * 5000, "é" * 86])
def test_signature_by_another_key_is_refused(signature: str) -> None:
    genesis, findings = parse({**signed(REFERENCE), "signature": signature})
    assert genesis is None
    assert [finding.rule for finding in findings] == ["D197"]


@pytest.mark.parametrize("name", REFERENCE)
def test_a_record_that_was_changed_after_it_was_signed_is_refused(name: str) -> None:
    record = signed(REFERENCE)
    others = {"archetype": "monitor", "trust_tier": 3, "verification_path": "org-asserted"}
    other = others.get(name, public_jwk(generate_key())["x"] if name.endswith("key") else "other")
    genesis, findings = parse({**record, name: other})
    assert genesis is None
    assert "D197" in {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"owner_id": ...}, "D103"),
        ({"archetype": ...}, "D103"),
        ({"archetype": None}, "D103"),
        ({"issuer_public_key": None}, "D103"),
        ({"owner_id": None}, "D103"),
        ({"archetype": "king"}, "D106"),
        ({"governance_zone": ...}, "D103"),
        ({"issued_at": ...}, "D103"),
        ({"issuer_public_key": ...}, "D103"),
        ({"issuer_public_key": "no key"}, "D104"),
        ({"agent_public_key": 7}, "D104"),
        ({"trust_tier": 0}, "D106"),
        ({"trust_tier": 1}, "D198"),
        ({"trust_tier": 1, "verification_path": ...}, "D198"),
        ({"trust_tier": 1, "verification_path": "log-anchored"}, "D103"),
        ({"verification_path": "hearsay"}, "D106"),
    ],
)
def test_signed_record_that_breaks_a_rule_is_refused(members: dict[str, Any], rule: str) -> None:
    genesis, findings = parse(signed(REFERENCE, **members))
    assert genesis is None
    assert rule in {finding.rule for finding in findings}


def test_an_unsigned_record_is_refused() -> None:
    genesis, findings = parse(REFERENCE)
    assert genesis is None
    assert [finding.rule for finding in findings] == ["D103"]


def test_invalid_scope_is_omitted_and_reported() -> None:
    genesis, (finding,) = parse(signed(DRAFT, scope=["lending:read", "All"]))
    assert genesis is not None
    assert genesis.scopes == ("lending:read",)
    assert finding.severity == "warning"


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"a": "\ud800"}'])
def test_non_object_is_refused(text: str) -> None:
    assert parse_genesis(text, "a.json")[0] is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*REFERENCE, *DRAFT, "signature", "agent_id"]), JSON, min_size=1))
@settings(max_examples=150)
def test_modified_record_does_not_verify(members: dict[str, Any]) -> None:
    record = signed(REFERENCE)
    changed = {**record, **members}
    genesis, _ = parse(changed)
    assert genesis is None or changed == record or (members == {"agent_id": None})
