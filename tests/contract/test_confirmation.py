"""Which calls wait for a confirmation, and which ones a person confirms for a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.confirmation import asks_person, needs_confirmation
from bespeak.contract.policy import Policies


@pytest.mark.parametrize(
    ("impact", "confirm", "policy", "needed", "asked"),
    [
        ("irreversible", None, False, False, True),
        ("irreversible", None, True, True, True),
        ("irreversible", False, True, False, False),
        ("reversible", True, False, True, True),
        ("reversible", None, True, False, False),
        ("informational", None, True, False, False),
    ],
)
def test_the_endpoint_wins_over_the_policy(
    impact: str, confirm: bool | None, policy: bool, needed: bool, asked: bool
) -> None:
    endpoint = replace(make_endpoint("BOOK", "/room", echo, impact=impact), confirm=confirm)
    policies = Policies(confirm_irreversible=policy)
    assert (needs_confirmation(endpoint, policies), asks_person(endpoint, policies)) == (needed, asked)
