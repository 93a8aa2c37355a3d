"""The ledger of the store as a payment provider."""

from __future__ import annotations

from bespeak.runtime.payments.provider import Done, Order
from bespeak.state.store.commands.ledger import HELD, SALES, MoveMoney, account_of


class LedgerProvider:
    """Moves money between accounts in the transaction that changes the purchase."""

    in_store = True

    async def hold(self, order: Order) -> Done:
        """Move the money from the principal to the held money."""
        return _move(order, account_of(order.principal_id), HELD)

    async def settle(self, order: Order) -> Done:
        """Move held money to the sales."""
        return _move(order, HELD, SALES)

    async def release(self, order: Order) -> Done:
        """Move held money back to the principal."""
        return _move(order, HELD, account_of(order.principal_id))

    async def refund(self, order: Order) -> Done:
        """Move money from the sales back to the principal."""
        return _move(order, SALES, account_of(order.principal_id))

    async def close(self) -> None:
        """Do nothing: the store is closed by others."""


def _move(order: Order, source: str, target: str) -> Done:
    return Done(order.purchase_id, (MoveMoney(order.key, source, target, order.money.currency, order.money.minor),))
