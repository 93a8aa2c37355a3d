from __future__ import annotations

import pytest

from bespeak.contract.agent import ANCHORED, TIERS, VERIFICATION_PATHS, is_discoverable, trust_fault


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
