"""A standard method refuses with the statuses that its table declares."""

from __future__ import annotations

import pytest

from bespeak.contract.standard.definition import NAME, list_of, members, one_of
from bespeak.contract.standard.methods import STANDARD


def test_refusal_has_the_declared_status_and_details_and_must_be_declared() -> None:
    refused = STANDARD["CANCEL"].refuse("already-cancelled", "It is cancelled.", target_id="x")
    assert (refused.status, refused.code, refused.details) == (409, "already-cancelled", {"target_id": "x"})
    with pytest.raises(StopIteration):
        STANDARD["CANCEL"].refuse("no-such-error", "")


def test_members_are_read_from_their_notation_in_its_order() -> None:
    written = "item: ITEM, state?: queued | done, attempt: 1..20, version: 1.., told?: [NAME]"
    assert list(members(written, ITEM={"type": "null"}).items()) == [
        ("item", {"type": "null"}),
        ("state?", one_of("queued", "done")),
        ("attempt", {"type": "integer", "minimum": 1, "maximum": 20}),
        ("version", {"type": "integer", "minimum": 1}),
        ("told?", list_of(NAME)),
    ]


def test_member_of_an_unknown_schema_is_an_error() -> None:
    with pytest.raises(KeyError, match="ITEM"):
        members("item: ITEM")
