"""A standard method refuses with the statuses that its table declares."""

from __future__ import annotations

import pytest

from bespeak.contract.standard.methods import STANDARD


def test_a_refusal_has_the_declared_status_and_details() -> None:
    refused = STANDARD["CANCEL"].refuse("already-cancelled", "It is cancelled.", target_id="x")
    assert (refused.status, refused.code, refused.details) == (409, "already-cancelled", {"target_id": "x"})


def test_an_undeclared_error_cannot_be_used() -> None:
    with pytest.raises(StopIteration):
        STANDARD["CANCEL"].refuse("no-such-error", "")
