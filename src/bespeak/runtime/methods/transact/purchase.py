"""PURCHASE: pays for an item, or holds the money for it (Tier 2 5.7). CONFIRM settles a hold, CANCEL gives it back."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec

from bespeak.contract.money import Money
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, StepCall
from bespeak.runtime.gates.purchase import merchant_of, read_amount
from bespeak.runtime.methods.needs import refuse_without_needs, too_large
from bespeak.runtime.payments.purchase import FAILED, HELD, KIND, PENDING, Purchase, decode
from bespeak.runtime.payments.purchases import Purchases
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.records import PutRecord, Record

PREFIX: Final = "pur-"
"""Beginning of the ids of purchases, which are also those of their holds."""
MOST_ITEM: Final = 16 * 1024
MOST_PURCHASES: Final = 100_000
"""Purchases of one agent that can be looked up."""
_PURCHASE: Final = STANDARD["PURCHASE"]
_LATER: Final = (("Retry-After", "5"),)


async def purchase(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer PURCHASE /. Principal, budget and merchant were judged by a gate."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    if len(msgspec.json.encode(given["item"])) > MOST_ITEM:
        return too_large("item", MOST_ITEM)
    money = read_amount(call)
    assert isinstance(money, Money), "the gate has read it"
    bought = Purchase(
        item=given["item"],
        principal_id=given["principal_id"],
        money=money,
        merchant=merchant_of(call),
        payment_method=given.get("payment_method"),
        immediate=given.get("confirm_immediately", True),
    )
    purchases: Purchases = call.server.payments
    purchase_id, owner, key = f"{PREFIX}{secrets.token_hex(16)}", call.agent_id or "", _key(call)
    if key is not None and not purchases.in_store:
        # A provider outside may have been paid by a process that died before it could answer.
        found = await purchases.find(key=key)
        if found is not None:
            return await _repeat(call, found, bought)

    def make(state: str, now: Purchase, delay: float | None, lifetime: float | None) -> Command:
        return PutRecord(
            *(purchase_id, KIND, owner, state, now.text()),
            # Within the store, the answer under its key is one transaction with the money.
            key=key if state == PENDING else None,
            delay=delay,
            lifetime=lifetime,
            most=MOST_PURCHASES,
        )

    return await purchases.change(purchase_id, bought, make, lambda done: _tell(call, done))


async def _repeat(call: RoutedCall, found: Record, bought: Purchase) -> Envelope | Refused:
    before = decode(found.data)
    if (before.item, before.principal_id, before.money) != (bought.item, bought.principal_id, bought.money):
        message = "The Idempotency-Key belongs to another purchase; use a new one."
        return Refused(status.CONFLICT, "idempotency-key-reused", message)
    purchases: Purchases = call.server.payments
    return _tell(call, await purchases.advance(found))


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


def _tell(call: RoutedCall, done: Record | Conflict) -> Envelope | Refused:
    if isinstance(done, Conflict):
        return _refuse(done)
    bought = decode(done.data)
    if done.state == FAILED:
        error = "insufficient-funds" if bought.fault_code == "insufficient-funds" else "payment-refused"
        message = f"The payment was refused: {bought.fault or 'the provider gave no reason'}."
        return _PURCHASE.refuse(error, message, purchase_id=done.record_id)
    if done.state == PENDING and _key(call) is not None and not isinstance(call, StepCall):
        # The answer under the key must be the final one, so this one is not kept.
        message = "The payment provider has not answered yet; repeat the request with the same Idempotency-Key."
        refused = _PURCHASE.refuse("purchase-pending", message, purchase_id=done.record_id)
        return msgspec.structs.replace(refused, headers=_LATER)
    result = receipt(done)
    return Envelope(result, status.ACCEPTED if done.state == PENDING else status.OK)


def receipt(record: Record) -> dict[str, Any]:
    """Return what a buyer is told of a purchase."""
    bought = decode(record.data)
    result: dict[str, Any] = {
        "purchase_id": record.record_id,
        "principal_id": bought.principal_id,
        "status": record.state,
        "amount": bought.money.document(),
    }
    if bought.reference is not None:
        result["provider_reference"] = bought.reference
    if record.state == HELD:
        result |= {"hold_id": record.record_id, "expires_at": write_instant(record.due or 0.0)}
    return result


def _refuse(conflict: Conflict) -> Refused:
    match conflict.reason:
        case "insufficient-funds":
            return _PURCHASE.refuse("insufficient-funds", "The account of the principal does not cover the amount.")
        case "too-many":
            message = f"The agent has {conflict.details['most']} purchases, the maximum."
            return _PURCHASE.refuse("payment-refused", message)
        case _:
            message = "The principal has no account here that can pay in this currency."
            return _PURCHASE.refuse("payment-refused", message)
