"""A candidate holds the claims of its upstream, by HTTP method or by hints."""

from __future__ import annotations

import pytest

from bespeak.documents.adoption.facade import Candidate


@pytest.mark.parametrize(
    ("candidate", "claims_to_read"),
    [
        (Candidate(method="GET"), True),
        (Candidate(method="POST", read_only=True), False),
        (Candidate(), False),
        (Candidate(read_only=True), True),
        (Candidate(read_only=False), False),
        (Candidate(read_only=True, destructive=True), False),
    ],
)
def test_method_decides_before_hints_and_contradicting_hints_promise_nothing(
    candidate: Candidate, claims_to_read: bool
) -> None:
    assert candidate.claims_to_read is claims_to_read


def test_origin_is_the_name_used_upstream() -> None:
    assert Candidate(method="GET", path="/pets", name="listPets").origin == "GET /pets"
    assert Candidate(name="list_pets").origin == "list_pets"
