"""The end of a hold or of a purchase: CONFIRM settles what is held, CANCEL releases or refunds it (Tier 2 5.5, 5.7)."""

from __future__ import annotations

from typing import Any, Final

from bespeak.contract.money import Money, read_money
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import PURCHASES
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.gates.purchase import refuse_over_budget
from bespeak.runtime.methods.needs import invalid
from bespeak.runtime.methods.transact.purchase import receipt
from bespeak.runtime.payments.purchase import (
    CANCELLED,
    EXPIRED,
    FAILED,
    HELD,
    KIND,
    PENDING,
    REFUND,
    RELEASE,
    SETTLE,
    SETTLED,
    Purchase,
    decode,
)
from bespeak.runtime.payments.purchases import KEPT, Make, Purchases
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import ChangeRecord, Record

_CANCEL: Final = STANDARD["CANCEL"]
_NOT_FOUND: Final = Refused(status.NOT_FOUND, "target-not-found", "This agent has no hold with this target_id.")
_ENDS: Final = {"accepted": (SETTLE, SETTLED), "rejected": (RELEASE, CANCELLED)}


async def confirm_hold(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer CONFIRM / of a hold: accepted pays it, rejected frees the money. Only the buyer can decide."""
    purchases: Purchases = call.server.payments
    decision = call.input["status"]
    record = await purchases.find(call.input["target_id"])
    if record is None or record.owner not in (call.agent_id, call.principal.principal_id):
        return _NOT_FOUND
    if decision not in _ENDS:
        return invalid("status", "must be accepted or rejected for a hold; it expires if it is left alone.")
    bought = decode(record.data)
    if decision == "accepted":
        if not call.principal.scopes.covers(PURCHASES):
            message = f"Settling a purchase needs the scope {PURCHASES}."
            return Refused(status.SCOPE_VIOLATION, "scope-violation", message, {"missing_scopes": [PURCHASES]})
        refused = refuse_over_budget(call, bought.money)
        if refused is not None:
            return refused
    if record.state != HELD:
        return _refuse_state(record.state)

    def tell(done: Record | Conflict) -> Envelope | Refused:
        if isinstance(done, Conflict):
            return _refuse_state(done.details.get("state", SETTLED))
        if done.state == FAILED:
            message = f"The payment was refused: {decode(done.data).fault}."
            return Refused(status.FORBIDDEN, "payment-refused", message, {"purchase_id": done.record_id})
        result = {
            "target_id": done.record_id,
            "status": decision,
            "confirmed_at": write_instant(done.updated),
            "purchase": receipt(done),
        }
        return Envelope(result, status.ACCEPTED if done.state == PENDING else status.OK)

    return await purchases.change(record.record_id, bought.with_phase(*_ENDS[decision]), _change(record), tell)


def _refuse_state(state: str) -> Refused:
    if state == EXPIRED:
        return Refused(status.TIMEOUT, "hold-expired", "The hold has expired; make the purchase again.")
    if state == PENDING:
        message = "The payment provider is at work on this purchase; try again later."
        return Refused(status.CONFLICT, "purchase-pending", message, headers=(("Retry-After", "5"),))
    message = f"The purchase is {state}; a decision is final."
    return Refused(status.CONFLICT, "already-decided", message, {"purchase_status": state})


async def cancel_purchase(call: RoutedCall, record: Record) -> Effects | Envelope | Refused:
    """Answer CANCEL / of a purchase that is held or settled."""
    purchases: Purchases = call.server.payments
    bought = decode(record.data)
    changed = _refunding(call, record, bought)
    if isinstance(changed, Refused):
        return changed

    def tell(done: Record | Conflict) -> Envelope | Refused:
        if isinstance(done, Conflict):
            state = done.details.get("state")
            if state == CANCELLED:
                return _CANCEL.refuse("already-cancelled", f"{record.record_id} is cancelled already.", kind=KIND)
            if state is None:
                return _CANCEL.refuse("refund-impossible", "The money cannot be given back.", kind=KIND)
            return _CANCEL.refuse("not-cancellable", f"The purchase is {state} now.", kind=KIND, state=state)
        if done.state == SETTLED:
            message = f"The refund was refused: {decode(done.data).fault}."
            return _CANCEL.refuse("refund-impossible", message, kind=KIND)
        ended = done.state == CANCELLED
        result: dict[str, Any] = {
            "target_id": done.record_id,
            "kind": KIND,
            "status": CANCELLED if ended else "cancelling",
            "cancelled_at": write_instant(done.updated),
            "refund": _refund(record.state, decode(done.data)),
            "notified": [],
        }
        return Envelope(result, status.OK if ended else status.ACCEPTED)

    make = _change(record)
    if changed is bought:  # nothing is given back, so the provider has nothing to do
        command = make(CANCELLED, changed, None, KEPT)
        return Effects((command,), lambda done: tell(done if isinstance(done, Conflict) else done[0]))
    return await purchases.change(record.record_id, changed, make, tell)


def _refunding(call: RoutedCall, record: Record, bought: Purchase) -> Purchase | Refused:
    policy, amount = call.input.get("refund_policy"), call.input.get("refund_amount")
    if (policy == "partial") != (amount is not None):
        return _CANCEL.refuse("refund-impossible", "refund_amount goes with refund_policy partial, and only with it.")
    if record.state == HELD:
        if amount is not None:
            return _CANCEL.refuse("refund-impossible", "Nothing is paid yet; the whole hold is released.", kind=KIND)
        return bought.with_phase(RELEASE, CANCELLED)
    if policy is None:
        message = "The purchase is settled; say in refund_policy whether its amount is refunded."
        return _CANCEL.refuse("not-cancellable", message, kind=KIND, state=record.state)
    if policy == "none":
        return bought
    money = bought.money if amount is None else read_money(amount["value"], amount["currency"])
    if isinstance(money, str) or money.currency != bought.money.currency or not 0 < money.minor <= bought.money.minor:
        message = f"refund_amount must be more than nothing and at most {bought.money}."
        return _CANCEL.refuse("refund-impossible", message, field="/refund_amount")
    return bought.with_phase(REFUND, CANCELLED, refund=money.minor)


def _refund(before: str, bought: Purchase) -> dict[str, Any]:
    if before == HELD:
        return {"policy": "release", "amount": bought.money.document()}
    refund = Money(bought.refund or 0, bought.money.currency)
    policy = "none" if not refund.minor else "full" if refund == bought.money else "partial"
    return {"policy": policy, "amount": refund.document()}


def _change(record: Record) -> Make:
    def make(state: str, now: Purchase, delay: float | None, lifetime: float | None) -> ChangeRecord:
        return ChangeRecord(
            *(record.record_id, (KIND,), (record.state,), state),
            owner=record.owner,
            version=record.version,
            data=now.text(),
            delay=delay,
            lifetime=lifetime,
        )

    return make
