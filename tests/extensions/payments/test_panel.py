"""The panel of payments shows the ledger, and whether it agrees."""

from __future__ import annotations

import pytest
from tests.console import Mounted
from tests.extensions.payments.test_commands import ACME, Forge
from tests.stateful import audited_backend, keeping

from bespeak.contract.standard.methods import choose_methods
from bespeak.extensions.payments.store import HELD, MoveMoney, OpenAccount

__all__ = ["audited_backend"]
pytestmark = pytest.mark.anyio


async def test_balances_and_entries_are_shown_and_checked() -> None:
    async with keeping(methods=choose_methods(("PURCHASE",))) as kept:
        await kept.store.do(OpenAccount(ACME, "EUR", 1000))
        await kept.store.do(MoveMoney("pur-1/hold", ACME, HELD, "EUR", 250))
        console = Mounted(bench=kept.bench)
        entries, accounts, purchases, _ = await console.panel("payments")
        assert {tuple(row["cells"][1:]) for row in entries["rows"][:2]} == {
            (ACME, "-2.50 EUR", "pur-1/hold"),
            (HELD, "2.50 EUR", "pur-1/hold"),
        }
        assert [ACME, "7.50 EUR", "0.00 EUR"] in [row["cells"] for row in accounts["rows"]]
        assert purchases["rows"] == []
        [faults] = await console.panel("payments", key="ledger")
        assert faults["rows"] == []
        await kept.store.do(Forge())
        [faults] = await console.panel("payments", key="ledger")
        assert [row["cells"] for row in faults["rows"]] == [[f"account {ACME} EUR"]]
