"""PURCHASE buys an item at the price of its seller (Tier 2 5.7); CONFIRM settles, CANCEL refunds (Tier 2 5.5)."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.participant import Price
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import PURCHASES
from bespeak.extensions.payments.gate import merchant_of, read_amount, refuse_over_budget
from bespeak.extensions.payments.purchases import (
    CANCELLED,
    EXPIRED,
    FAILED,
    FULFIL,
    HELD,
    PENDING,
    PURCHASE,
    REFUND,
    RELEASE,
    RETURN,
    SETTLED,
    Purchase,
    Purchases,
    Stage,
    decode,
    read_item,
)
from bespeak.extensions.payments.settings import Money, read_money
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, StepCall
from bespeak.runtime.handling import Conflicts, RefusedError, check_content, invalid, new_id, passed, refusal, stateful
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import PutRecord, Record
from bespeak.state.store.store import Command

PREFIX: Final = "pur-"  # beginning of the ids of purchases, which are also those of their holds
MOST_ITEM: Final = 16 * 1024
MOST_PURCHASES: Final = 100_000  # purchases of one agent that can be looked up
_PURCHASE: Final = STANDARD["PURCHASE"]


@stateful
async def purchase(call: RoutedCall) -> Effects | Envelope:
    """Answer PURCHASE /. Principal, item and merchant were judged by a gate."""
    given = call.input
    check_content(given, "item", MOST_ITEM)
    limit, (sale, named) = passed(read_amount(call)), read_item(given["item"])
    bought = Purchase(
        item={"sale": sale, "input": named},
        principal_id=given["principal_id"],
        money=limit,
        merchant=merchant_of(call),
        payment_method=given.get("payment_method"),
        immediate=given.get("confirm_immediately", True),
        limit=limit,
        authority=Authority.of(call.principal, call.request),
    )
    purchases: Purchases = call.server.part("payments")
    purchase_id, owner, key = new_id(PREFIX[:-1]), call.agent_id or "", _key(call)
    # A process may have died after it had held the money, before it could answer.
    found = None if key is None else await purchases.find(key=key)
    if found is not None:
        before = decode(found.data)
        if (before.item, before.principal_id, before.limit) != (bought.item, bought.principal_id, bought.limit):
            message = "The Idempotency-Key belongs to another purchase; use a new one."
            raise refusal(status.CONFLICT, "idempotency-key-reused", message)
        return _tell(call, await purchases.carry_on(found))
    price = await purchases.sales.ask_price(call, bought.item)
    if price.currency != limit.currency:
        message = f"`amount` is in {limit.currency}; the price is {price}."
        raise refusal(_PURCHASE, "invalid-amount", message, field="/amount", price=price.document())
    if price.minor > limit.minor:
        message = f"The price is {price}, more than the amount of {limit}; buy with a higher amount or not at all."
        raise refusal(_PURCHASE, "price-changed", message, price=price.document())
    passed(refuse_over_budget(call, price))
    bought = msgspec.structs.replace(bought, money=price)

    def make(state: str, now: Purchase) -> Command:
        delay, lifetime = purchases.times(state, now)
        # What is held in the store is one transaction with the answer under its key.
        made = (purchase_id, PURCHASE, owner, state, msgspec.json.encode(now).decode())
        kept_as = key if state == PENDING else None
        return PutRecord(*made, key=kept_as, delay=delay, lifetime=lifetime, most=MOST_PURCHASES)

    return await purchases.change(purchase_id, bought, make, lambda done: _tell(call, done), _CONFLICTS)


async def quote_price(call: RoutedCall, given: Mapping[str, Any]) -> Mapping[str, Decimal]:
    """Return what a purchase would cost, for QUOTE. Raises the refusal of its item."""
    purchases: Purchases | None = call.server.part("payments")
    if purchases is None:
        return {}
    money = await purchases.sales.ask_price(call, given.get("item", ""))
    return {money.currency: money.amount}


def _key(call: RoutedCall) -> str | None:
    """Return the key under which the purchase is made once: that of the request or workflow, and of the step it is."""
    numbers: list[str] = []
    one = call
    while isinstance(one, StepCall) and one.journal is None:
        numbers.append(one.number)
        one = one.parent
    journal = one.journal if isinstance(one, StepCall) else None
    key = call.request.headers.get(names.IDEMPOTENCY_KEY) if journal is None else journal.key
    return None if key is None else " ".join((call.agent_id or "", key, *numbers))


def _tell(call: RoutedCall, done: Record) -> Envelope:
    _check_failed(done)
    if done.state == PENDING and _key(call) is not None and not isinstance(call, StepCall):
        # The answer under the key must be the final one, so this one is not kept.
        message = "The provider or the seller has not answered yet; repeat the request with the same Idempotency-Key."
        raise refusal(_PURCHASE, "purchase-pending", message, retry_after=5, purchase_id=done.record_id)
    return Envelope(receipt(done), status.ACCEPTED if done.state == PENDING else status.OK)


def _check_failed(done: Record) -> None:
    refused = decode(done.data).refused
    if done.state == FAILED and refused is not None:
        named = {**refused.details, "purchase_id": done.record_id}
        raise RefusedError(msgspec.structs.replace(refused, details=named))


async def describe_purchase(_: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of a purchase."""
    refused = decode(record.data).refused if record.state == FAILED else None
    error = {} if refused is None else {"error": {"code": refused.code, "message": refused.message}}
    return {**receipt(record), **error}


def receipt(record: Record) -> dict[str, Any]:
    bought = decode(record.data)
    result: dict[str, Any] = {
        "purchase_id": record.record_id,
        "principal_id": bought.principal_id,
        "item": bought.item,
        "status": record.state,
        "amount": bought.money.document(),
    }
    more = {"delivered": bought.delivered, "provider_reference": bought.reference}
    result |= {name: value for name, value in more.items() if value is not None}
    if record.state == HELD:
        result |= {"hold_id": record.record_id, "expires_at": write_instant(record.due or 0.0)}
    return result


_UNCOVERED: Final = "The account of the principal does not cover the amount."
_CONFLICTS: Final[Conflicts] = {
    "insufficient-funds": _PURCHASE.refuse("insufficient-funds", _UNCOVERED),
    "too-many": _PURCHASE.refuse("payment-refused", f"The agent has {MOST_PURCHASES} purchases, the maximum."),
    "exists": _PURCHASE.refuse(
        "purchase-pending", "This purchase is being made; repeat the request with the same Idempotency-Key."
    ),
    "": _PURCHASE.refuse("payment-refused", "The principal has no account here that can pay in this currency."),
}
_CANCEL: Final = STANDARD["CANCEL"]
_ENDS: Final[Mapping[str, tuple[Stage, str]]] = {"accepted": (FULFIL, SETTLED), "rejected": (RELEASE, CANCELLED)}


def confirm_own(call: RoutedCall) -> Coroutine[Any, Any, Effects | Envelope] | None:
    """Answer CONFIRM / of a purchase; return None for any other target."""
    is_own = call.input["target_id"].startswith(PREFIX) and call.server.part("payments") is not None
    return confirm_hold(call) if is_own else None


async def confirm_hold(call: RoutedCall) -> Effects | Envelope:
    """Answer CONFIRM / of a hold: accepted delivers and pays, rejected frees the money. Only the buyer can decide."""
    purchases: Purchases = call.server.part("payments")
    decision = call.input["status"]
    record = await purchases.find(call.input["target_id"])
    if record is None or record.owner not in (call.agent_id, call.principal.principal_id):
        raise refusal(status.NOT_FOUND, "target-not-found", "This agent has no hold with this target_id.")
    if decision not in _ENDS:
        raise invalid("status", "must be accepted or rejected for a hold; it expires if it is left alone.")
    bought = decode(record.data)
    if decision == "accepted":
        if not call.principal.scopes.covers(PURCHASES):
            message = f"Settling a purchase needs the scope {PURCHASES}."
            raise refusal(status.SCOPE_VIOLATION, "scope-violation", message, missing_scopes=[PURCHASES])
        passed(refuse_over_budget(call, bought.money))
    if record.state != HELD:
        raise RefusedError(_refuse_state({"state": record.state}))

    def tell(done: Record) -> Envelope:
        _check_failed(done)
        result = {"target_id": done.record_id, "status": decision, "confirmed_at": write_instant(done.updated)}
        result["purchase"] = receipt(done)
        return Envelope(result, status.ACCEPTED if done.state == PENDING else status.OK)

    changed = bought.with_phase(*_ENDS[decision], authority=_renew(call, bought))
    amend = partial(purchases.amend, record)
    return await purchases.change(record.record_id, changed, amend, tell, {"": _refuse_state})


def _renew(call: RoutedCall, bought: Purchase) -> Authority | None:
    """Return the authority of a decision about a purchase, in which its seller acts."""
    return bought.authority and bought.authority.renew(call.principal, call.request)


def _refuse_state(found: Mapping[str, Any]) -> Refused:
    state = found.get("state", SETTLED)
    if state == EXPIRED:
        return Refused(status.TIMEOUT, "hold-expired", "The hold has expired; make the purchase again.")
    if state == PENDING:
        message = "The payment provider is at work on this purchase; try again later."
        return Refused(status.CONFLICT, "purchase-pending", message, headers=(("Retry-After", "5"),))
    message = f"The purchase is {state}; a decision is final."
    return Refused(status.CONFLICT, "already-decided", message, {"purchase_status": state})


async def cancel_purchase(call: RoutedCall, record: Record) -> Effects | Envelope:
    """Answer CANCEL / of a purchase that is held or settled."""
    purchases: Purchases = call.server.part("payments")
    bought = decode(record.data)
    changed = _refunding(call, record, bought)

    def changed_meanwhile(found: Mapping[str, Any]) -> Refused:
        state = found.get("state")
        if state == CANCELLED:
            return _CANCEL.refuse("already-cancelled", f"{record.record_id} is cancelled already.", kind=PURCHASE)
        if state is None:
            return _CANCEL.refuse("refund-impossible", "The money cannot be given back.", kind=PURCHASE)
        return _CANCEL.refuse("not-cancellable", f"The purchase is {state} now.", kind=PURCHASE, state=state)

    def tell(done: Record) -> Envelope:
        if done.state == SETTLED:
            now = decode(done.data)
            assert now.refused is not None, "nothing else ends in this state"
            if now.refused.status >= status.SERVER_ERROR:
                raise RefusedError(now.refused)
            raise refusal(_CANCEL, "refund-impossible", now.refused.message, kind=PURCHASE)
        ended = done.state == CANCELLED
        result: dict[str, Any] = {
            "target_id": done.record_id,
            "kind": PURCHASE,
            "status": CANCELLED if ended else "cancelling",
            "cancelled_at": write_instant(done.updated),
            "refund": _refund(record.state, decode(done.data)),
            "notified": [],
        }
        return Envelope(result, status.OK if ended else status.ACCEPTED)

    amend = partial(purchases.amend, record)
    return await purchases.change(record.record_id, changed, amend, tell, {"": changed_meanwhile})


def _refunding(call: RoutedCall, record: Record, bought: Purchase) -> Purchase:
    policy, amount = call.input.get("refund_policy"), call.input.get("refund_amount")
    if amount is not None and policy != "partial":
        raise refusal(_CANCEL, "refund-impossible", "refund_amount goes with refund_policy partial, and only with it.")
    if record.state == HELD:
        if policy == "partial":
            message = "Nothing is paid yet; the whole hold is released."
            raise refusal(_CANCEL, "refund-impossible", message, kind=PURCHASE)
        return bought.with_phase(RELEASE, CANCELLED)
    if policy is None:
        message = "The purchase is settled; say in refund_policy whether its amount is refunded."
        raise refusal(_CANCEL, "not-cancellable", message, kind=PURCHASE, state=record.state)
    purchases: Purchases = call.server.part("payments")
    returns = purchases.sales.find_refund(bought.item)
    if returns is None:
        message = "The seller does not take back what it has delivered."
        raise refusal(_CANCEL, "refund-impossible", message, kind=PURCHASE)
    if bought.returned:  # the seller has the item, and the provider has refused the refund before
        return bought.with_phase(REFUND, CANCELLED, refund=bought.returned)
    if policy == "none":
        return bought.with_phase(RETURN, CANCELLED, refund=0, authority=_renew(call, bought))
    if policy == "partial" and amount is None and returns is not Price:
        message = "The seller gives back what is asked for; say in refund_amount how much that is."
        raise refusal(_CANCEL, "refund-impossible", message, field="/refund_amount")
    money = bought.money if amount is None else read_money(amount["value"], amount["currency"])
    if isinstance(money, str) or money.currency != bought.money.currency or not 0 < money.minor <= bought.money.minor:
        message = f"refund_amount must be more than nothing and at most {bought.money}."
        raise refusal(_CANCEL, "refund-impossible", message, field="/refund_amount")
    return bought.with_phase(RETURN, CANCELLED, refund=money.minor, authority=_renew(call, bought))


def _refund(before: str, bought: Purchase) -> dict[str, Any]:
    if before == HELD:
        return {"policy": "release", "amount": bought.money.document()}
    refund = Money(bought.refund or 0, bought.money.currency)
    policy = "none" if not refund.minor else "full" if refund == bought.money else "partial"
    return {"policy": policy, "amount": refund.document()}
