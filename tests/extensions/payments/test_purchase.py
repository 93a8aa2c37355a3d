"""A purchase goes from phase to phase, and back if a phase is declined."""

from __future__ import annotations

import pytest

from bespeak.contract.payments import Money
from bespeak.extensions.payments.purchases import Purchase, decode

SEAT = Purchase(item="seat", principal_id="acme", money=Money(1000, "EUR"), merchant={})


@pytest.mark.parametrize(
    ("purchase", "state", "phase"),
    [
        (SEAT, "pending", "settle"),
        (Purchase(item="seat", principal_id="a", money=SEAT.money, merchant={}, immediate=False), "held", "hold"),
        (SEAT.with_phase("settle", "settled"), "settled", "settle"),
        (SEAT.with_phase("release", "expired"), "expired", "release"),
        (SEAT.with_phase("refund", "cancelled", refund=5), "cancelled", "refund"),
    ],
)
def test_a_phase_that_was_done_leads_to_the_next_state(purchase: Purchase, state: str, phase: str) -> None:
    after, found = purchase.done("ref-1")
    assert (found, after.phase, after.reference) == (state, phase, "ref-1")


@pytest.mark.parametrize(
    ("phase", "state", "next_phase"),
    [("hold", "failed", "hold"), ("settle", "pending", "release"), ("refund", "settled", "refund")],
)
def test_a_phase_that_was_declined_keeps_no_money(phase: str, state: str, next_phase: str) -> None:
    after, found = SEAT.with_phase(phase, "settled").declined("no", "closed")
    assert (found, after.phase, after.fault, after.fault_code) == (state, next_phase, "closed", "no")


def test_a_refund_after_a_declined_one_is_another_order() -> None:
    first = SEAT.with_phase("refund", "cancelled", refund=5)
    assert (first.key("pur-1"), first.part) == ("pur-1/refund", Money(5, "EUR"))
    assert first.declined("no", "closed")[0].key("pur-1") == "pur-1/refund-1"


def test_a_purchase_is_stored_as_text() -> None:
    assert decode(SEAT.text()) == SEAT
