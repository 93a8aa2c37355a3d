"""What the guard refuses is final, unless the name may be found later."""

from __future__ import annotations

from bespeak.extensions.messages.transports import Retry, Undeliverable, blocked
from bespeak.protocol.address_guard import BlockedAddress


def test_a_private_address_is_final_and_a_caller_does_not_learn_it() -> None:
    outcome = blocked(BlockedAddress("'db.internal' has the address 10.0.0.7, which is a private network"))
    assert isinstance(outcome, Undeliverable)
    assert "10.0.0.7" in outcome.detail
    assert "10.0.0.7" not in outcome.message


def test_a_name_that_is_not_found_may_be_found_later() -> None:
    assert isinstance(blocked(BlockedAddress("not found", found=False)), Retry)
