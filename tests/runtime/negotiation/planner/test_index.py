"""Index: what yields what."""

from __future__ import annotations

from tests.runtime.negotiation.planner.services import HOTEL

from bespeak.runtime.negotiation.planner.operation import Index
from bespeak.runtime.negotiation.planner.vocabulary import Reading


def test_operations_are_found_by_what_they_yield() -> None:
    index = Index(HOTEL)
    assert [str(one.endpoint) for one, _ in index.yielding(Reading("hotel", "star"))] == ["FETCH /hotels/{id}"]
    assert [str(one.endpoint) for one, _ in index.listing("guest")] == ["LIST /guests"]
    assert index.yielding(Reading("hotel", "price")) == []


def test_the_order_of_registration_does_not_matter() -> None:
    numbers = [[str(one.endpoint) for one in Index(order).operations] for order in (HOTEL, HOTEL[::-1])]
    assert numbers[0] == numbers[1]
