"""Verbs that take back what another one does."""

from __future__ import annotations

import pytest

from bespeak.documents.adoption.evidence import takes_back


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("unlock", "lock", True), ("disable", "enable", True), ("create", "delete", False), ("list", "delete", False)],
)
def test_opposite_takes_back_unless_it_makes_anew(one: str, other: str, expected: bool) -> None:
    assert takes_back(one, other) is expected
