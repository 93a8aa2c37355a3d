"""Payment providers: they hold, settle, release and refund. The ledger of the store is one of them."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from bespeak.extensions.payments.settings import Money
from bespeak.extensions.payments.store import HELD, SALES, MoveMoney, account_of
from bespeak.state.store.store import Command

Phase = Literal["hold", "settle", "release", "refund"]


class Order(msgspec.Struct, frozen=True):
    """What a provider is asked to move, and for which purchase."""

    purchase_id: str
    key: str  # idempotency key, the purchase and its phase: an order that is repeated with it is carried out once
    principal_id: str
    money: Money
    payment_method: str | None = None
    reference: str | None = None  # reference that the provider gave when it held the money


class CarriedOut(msgspec.Struct, frozen=True):
    """The order was carried out."""

    reference: str | None = None
    commands: tuple[Command, ...] = ()  # for the transaction that records it; empty if it was done outside the store


class Declined(msgspec.Struct, frozen=True):
    """The order was refused, and nothing was moved."""

    code: str
    message: str


class Unclear(msgspec.Struct, frozen=True):
    """It is not known whether the order was carried out, so it is repeated with the same key."""

    message: str


Outcome = CarriedOut | Declined | Unclear


class Provider(Protocol):
    """Moves the money of purchases. Its methods do not raise."""

    in_store: bool  # True if every answer is `CarriedOut` with commands, so that a purchase is one transaction

    async def carry_out(self, phase: Phase, order: Order) -> Outcome:
        """Hold the money, settle or release what is held (nothing is done if none is), or refund what was taken."""
        ...

    async def close(self) -> None: ...


class LedgerProvider:
    """Moves money between accounts in the transaction that changes the purchase."""

    in_store = True

    async def carry_out(self, phase: Phase, order: Order) -> CarriedOut:
        """Move the money between the principal, the held money and the sales."""
        own = account_of(order.principal_id)
        source, target = {"hold": (own, HELD), "settle": (HELD, SALES), "release": (HELD, own), "refund": (SALES, own)}[
            phase
        ]
        move = MoveMoney(order.key, source, target, order.money.currency, order.money.minor)
        return CarriedOut(order.purchase_id, (move,))

    async def close(self) -> None:
        """Do nothing: the store is closed by others."""
