"""Payment providers: they hold, settle, release and refund. The ledger of the store is one of them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from bespeak.contract.payments import Money
from bespeak.state.store.commands.ledger import HELD, SALES, MoveMoney, account_of
from bespeak.state.store.store import Command


class Order(msgspec.Struct, frozen=True):
    """What a provider is asked to move, and for which purchase."""

    purchase_id: str
    key: str  # idempotency key, the purchase and its phase: an order that is repeated with it is carried out once
    principal_id: str
    money: Money
    payment_method: str | None = None
    reference: str | None = None  # reference that the provider gave when it held the money


class Done(msgspec.Struct, frozen=True):
    """The order was carried out."""

    reference: str | None = None
    commands: tuple[Command, ...] = ()
    """What carries it out, in the transaction that records it; empty if it was done outside the store."""


class Declined(msgspec.Struct, frozen=True):
    """The order was refused, and nothing was moved."""

    code: str
    message: str


class Unclear(msgspec.Struct, frozen=True):
    """It is not known whether the order was carried out, so it is repeated with the same key."""

    message: str


Outcome = Done | Declined | Unclear


class Provider(Protocol):
    """Moves the money of purchases. Its methods do not raise."""

    in_store: bool  # True if every answer is `Done` with commands, so that a purchase is one transaction

    async def hold(self, order: Order) -> Outcome:
        """Set the money aside."""
        ...

    async def settle(self, order: Order) -> Outcome:
        """Take the money that is held."""
        ...

    async def release(self, order: Order) -> Outcome:
        """Give back the money that is held; nothing is done if none is."""
        ...

    async def refund(self, order: Order) -> Outcome:
        """Give back money that was taken."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


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
