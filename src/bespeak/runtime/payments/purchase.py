"""A purchase: what is stored of it, its states, and the way from one to the next."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.contract.money import Money

KIND: Final = "purchase"

PENDING: Final = "pending"
"""State of a purchase whose provider has to do something: its phase."""
HELD: Final = "held"
SETTLED: Final = "settled"
CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"
FAILED: Final = "failed"

HOLD: Final = "hold"
SETTLE: Final = "settle"
RELEASE: Final = "release"
REFUND: Final = "refund"


class Purchase(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a purchase."""

    item: Any
    principal_id: str
    money: Money
    merchant: dict[str, str]
    """Merchant, manifest and intent that the buyer named."""
    payment_method: str | None = None
    immediate: bool = True
    """True to settle without a CONFIRM."""
    phase: str = HOLD
    """What the provider is asked for while the purchase is pending."""
    ends: str = SETTLED
    """State after a release or a refund."""
    refund: int | None = None
    """Part of the amount that is given back, in smallest units; None if none is."""
    reference: str | None = None
    """Name of the payment with its provider."""
    attempts: int = 0
    """Answers of the provider in a row that left it open whether something was done."""
    refusals: int = 0
    """Refunds that the provider has declined; the next one is another order."""
    fault: str | None = None
    """Reason for which the provider declined."""
    fault_code: str | None = None

    @property
    def part(self) -> Money:
        """Amount that the phase moves."""
        return self.money if self.refund is None else Money(self.refund, self.money.currency)

    def with_phase(self, phase: str, ends: str, **changes: Any) -> Purchase:
        """Return the purchase on its way to another state."""
        return msgspec.structs.replace(self, phase=phase, ends=ends, attempts=0, **changes)

    def done(self, reference: str | None) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has carried out the phase."""
        now = msgspec.structs.replace(self, attempts=0, reference=reference or self.reference)
        match self.phase:
            case "hold" if self.immediate:
                return now.with_phase(SETTLE, SETTLED), PENDING
            case "hold":
                return now, HELD
            case "settle":
                return now, SETTLED
            case _:
                return now, self.ends

    def declined(self, code: str, fault: str) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has refused the phase."""
        now = msgspec.structs.replace(self, fault=fault, fault_code=code)
        match self.phase:
            case "settle":
                return now.with_phase(RELEASE, FAILED), PENDING
            case "refund":
                return msgspec.structs.replace(now, refund=None, refusals=self.refusals + 1), SETTLED
            case _:
                return now, FAILED

    def key(self, purchase_id: str) -> str:
        """Return the idempotency key of the order that the phase is."""
        return f"{purchase_id}/{self.phase}" + (f"-{self.refusals}" if self.refusals else "")

    def text(self) -> str:
        """Return the content as JSON."""
        return msgspec.json.encode(self).decode()


decode: Final = msgspec.json.Decoder(Purchase).decode
