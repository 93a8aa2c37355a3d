"""A standard method refuses with the statuses that its table declares."""

from __future__ import annotations

import pytest

from bespeak.contract.standard.methods import STANDARD


def test_refusal_has_the_declared_status_and_details_and_must_be_declared() -> None:
    refused = STANDARD["CANCEL"].refuse("already-cancelled", "It is cancelled.", target_id="x")
    assert (refused.status, refused.code, refused.details) == (409, "already-cancelled", {"target_id": "x"})
    with pytest.raises(StopIteration):
        STANDARD["CANCEL"].refuse("no-such-error", "")
