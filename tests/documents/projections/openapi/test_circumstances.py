"""Requirements of a call, by contract and by configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.responses import Circumstances

BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
UNSAFE = replace(BOOK, semantic=replace(BOOK.semantic, is_idempotent=False))


@pytest.mark.parametrize(
    ("impact", "idempotent", "taken", "needed"),
    [
        ("informational", False, False, False),
        ("reversible", True, False, False),
        ("reversible", False, True, False),
        ("irreversible", False, True, True),
    ],
)
def test_key_is_needed_for_irreversible_calls_that_are_not_idempotent(
    impact: str, idempotent: bool, taken: bool, needed: bool
) -> None:
    endpoint = replace(BOOK, semantic=replace(BOOK.semantic, impact=impact, is_idempotent=idempotent))
    served = Circumstances(modes=("open",), policies=Policies(), keys_required=True)
    assert (served.takes_key(endpoint), served.needs_key(endpoint)) == (taken, needed)


def test_authority_is_needed_by_scopes_or_by_policy() -> None:
    lenient = Circumstances(modes=("open",), policies=Policies(scope_required_for_invocation=False))
    assert not lenient.needs_authority(BOOK)
    assert lenient.needs_authority(replace(BOOK, required_scopes=("a:b",)))
    assert Circumstances(modes=("open",), policies=Policies()).needs_authority(BOOK)


def test_the_policy_makes_calls_wait() -> None:
    served = Circumstances(modes=("open",), policies=Policies(confirm_irreversible=True))
    assert served.confirms(BOOK)
    assert not served.confirms(replace(BOOK, confirm=False))
