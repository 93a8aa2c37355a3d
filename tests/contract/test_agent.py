"""Agents: published identity, canonical form and proofs of trust."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.agent import (
    ANCHORED,
    TIERS,
    VERIFICATION_PATHS,
    Agent,
    canonical_genesis,
    genesis_id,
    is_discoverable,
    trust_fault,
)


@pytest.mark.requirement("API-16.4-1")
def test_agent_does_not_consent_to_wildcards_by_default_and_its_manifest_hides_its_scopes() -> None:
    assert Agent(agent_id="a" * 64, name="Clerk").wildcards is False
    agent = Agent(agent_id="a" * 64, name="Clerk", description="At the desk.", scopes=("booking:*",), wildcards=True)
    assert agent.reference() == {"agent_id": "a" * 64, "name": "Clerk", "description": "At the desk."}


@rows(
    "name, label",
    ("Clerk", "Clerk"),
    ("night_clerk-2", "night_clerk-2"),
    ("Clerk of Works", "Clerk-of-Works"),
    ("/../x?y#z", "x-y-z"),
    ("夜", "a" * 64),
    ("", "a" * 64),
    ("x" * 100, "x" * 64),
)
def test_label_is_valid_in_a_uri(name: str, label: str) -> None:
    assert Agent(agent_id="a" * 64, name=name).label == label


@pytest.mark.parametrize(
    ("status", "tier", "shown"),
    [("active", 1, True), ("active", None, True), ("active", 3, False), ("suspended", 1, False)],
)
def test_active_and_non_experimental_agents_are_discoverable(status: str, tier: int | None, shown: bool) -> None:
    assert Agent(agent_id="a" * 64, name="Clerk", status=status, trust_tier=tier).is_discoverable is shown


VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)


@pytest.mark.requirement("CORE-7.1-1")
def test_the_canonical_form_is_sorted_and_has_no_white_space_no_signature_and_no_id() -> None:
    record = {"owner": "Zürich", "b": {"d": 1, "c": [True, None]}, "signature": "s", "agent_id": "i"}
    assert canonical_genesis(record) == '{"b":{"c":[true,null],"d":1},"owner":"Zürich"}'.encode()
    assert genesis_id(record) == hashlib.sha256(canonical_genesis(record)).hexdigest()


@given(st.dictionaries(st.text(max_size=8), VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_another_json_library_gives_the_same_bytes(record: dict[str, Any]) -> None:
    signed = {name: value for name, value in record.items() if name not in ("signature", "agent_id")}
    assert json.loads(canonical_genesis(record)) == signed
    assert genesis_id(dict(reversed(record.items()))) == genesis_id(record)
    plain = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if all(character.isprintable() and ord(character) < 0x10000 for character in plain):
        assert canonical_genesis(record).decode() == plain


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_change_changes_the_id(one: str, other: str) -> None:
    assert (genesis_id({"name": one}) == genesis_id({"name": other})) == (one == other)


@pytest.mark.requirement("CORE-7.4-1")
@pytest.mark.parametrize("path", [*VERIFICATION_PATHS, None])
@pytest.mark.parametrize("tier", TIERS)
def test_only_the_first_tier_needs_a_proof(tier: int, path: str | None) -> None:
    assert (trust_fault(tier, path) is None) == (tier != 1 or path in ANCHORED)


def test_fault_names_the_given_and_the_allowed_paths() -> None:
    fault = trust_fault(1, "self-signed")
    assert fault is not None
    assert "self-signed" in fault
    assert "dns-anchored" in fault


@pytest.mark.parametrize(("tier", "shown"), [(1, True), (2, True), (3, False), (None, True)])
def test_experiments_are_not_shown_to_the_public(tier: int | None, shown: bool) -> None:
    assert is_discoverable(tier) is shown
