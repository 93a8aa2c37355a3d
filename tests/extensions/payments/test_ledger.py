"""The ledger moves money with commands, in the transaction of the purchase."""

from __future__ import annotations

import pytest

from bespeak.contract.payments import Money
from bespeak.extensions.payments.provider import LedgerProvider, Order
from bespeak.state.store.commands.ledger import MoveMoney

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("phase", "source", "target"),
    [
        ("hold", "principal/acme", "held"),
        ("settle", "held", "sales"),
        ("release", "held", "principal/acme"),
        ("refund", "sales", "principal/acme"),
    ],
)
async def test_each_phase_is_one_transaction(phase: str, source: str, target: str) -> None:
    order = Order("pur-1", f"pur-1/{phase}", "acme", Money(1000, "EUR"))
    done = await getattr(LedgerProvider(), phase)(order)
    assert done.commands == (MoveMoney(f"pur-1/{phase}", source, target, "EUR", 1000),)
