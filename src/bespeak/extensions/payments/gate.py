"""PURCHASE: whose money, for what, how much, from whom (Tier 2 5.7, 10.1; core 2.3).

Its scope is judged as that of any endpoint. 403: the caller does not act for the principal, or names
a payment method that the ledger does not have. 404 or 422: the item or the
amount is not valid. 458: the merchant that the buyer means is not this one. The price is compared with Budget-Limit
(456) when the seller has told it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import MERCHANT
from bespeak.extensions.payments.settings import LEDGER, Money, read_money
from bespeak.protocol.exchange.header_values import ONE_CALL, UNITS, parse_budget
from bespeak.protocol.exchange.headers import BUDGET_LIMIT, INTENT_ASSERTION, MERCHANT_ID, MERCHANT_MANIFEST_FINGERPRINT
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, RoutedCall

_KEY: Final = ("PURCHASE", "/")
_PURCHASE: Final = STANDARD["PURCHASE"]
_MONEY_PLACES: Final = 2
_RECORDED: Final = {"merchant_id": MERCHANT_ID, "merchant_fingerprint": MERCHANT_MANIFEST_FINGERPRINT}


def purchase_gate(call: RoutedCall) -> Refused | None:
    """Judge a purchase before anybody is asked to confirm it, and before anything runs."""
    if call.method != "PURCHASE":
        return None
    endpoint = call.route.endpoint
    payments = call.server.part("payments")
    if endpoint.key != _KEY or not endpoint.builtin or endpoint.missing is not None or payments is None:
        return None
    if call.input["principal_id"] not in set(principals_of(call)):
        message = "The agent does not act for this principal; name its own, or one who delegated to it."
        return _PURCHASE.refuse("payment-refused", message, field="/principal_id")
    instrument = call.input.get("payment_method", LEDGER)
    if payments.settings.provider == LEDGER and instrument != LEDGER:
        message = f"This server pays from its ledger, not with {instrument[:80]!r}; leave payment_method out."
        return _PURCHASE.refuse("payment-refused", message, field="/payment_method", payment_methods=[LEDGER])
    money = read_amount(call)
    if isinstance(money, Refused):
        return money
    # A budget that allows nothing in this currency refuses every price.
    least = refuse_over_budget(call, Money(1, money.currency), counts=False)
    return least or _refuse_merchant(call) or payments.sales.check(call, call.input["item"])


def read_amount(call: RoutedCall) -> Money | Refused:
    """Return the amount of a call in a currency that this server takes, or a refusal."""
    amount, accepted = call.input["amount"], call.server.part("payments").settings.currencies
    if amount["currency"] not in accepted:
        return _invalid(f"is in {amount['currency']}; this server takes {', '.join(accepted)}")
    money = read_money(amount["value"], amount["currency"])
    if isinstance(money, str):
        return _invalid(money)
    return money if money.minor else _invalid("must be more than nothing")


def _invalid(fault: str) -> Refused:
    return _PURCHASE.refuse("invalid-amount", f"`amount` {fault}.", field="/amount")


def principals_of(call: Call) -> Iterator[str]:
    """Yield those for whom the caller may spend: itself, its principal, and whoever delegated to it."""
    who = call.principal
    yield from filter(None, (who.agent_id, who.principal_id))
    for delegator in who.delegators:
        agent = call.server.agents.get(delegator)
        yield from filter(None, (delegator, None if agent is None else agent.principal_id))


def refuse_over_budget(call: RoutedCall, money: Money, *, counts: bool = True) -> Refused | None:
    """Refuse an amount beyond Budget-Limit. What earlier steps of the same call have spent counts too."""
    text = call.request.headers.get(BUDGET_LIMIT)
    limits = {} if text is None else parse_budget(text)
    if isinstance(limits, Fault):
        return None  # the budget gate has refused it
    limits = {unit: limit for unit, limit in limits.items() if UNITS[unit] == _MONEY_PLACES}
    composing = None if call.parent is None else call.parent.composing
    spent = 0 if composing is None else composing.spent.get(money.currency, 0)
    # A budget in another currency does not allow anything in this one.
    if limits and spent + money.amount > limits.get(money.currency, -1):
        limit = limits.get(money.currency)
        allowed = f"has no {money.currency}" if limit is None else f"is {limit} {money.currency}"
        before = f", beside the {spent} spent before" if spent else ""
        message = f"The purchase of {money} exceeds Budget-Limit, which {allowed}{before}."
        return _PURCHASE.refuse("budget-exceeded", message, amount=money.document())
    if composing is not None and counts:
        composing.spent[money.currency] = spent + money.amount
    return None


def spent_by(endpoint: Endpoint, output: Any) -> Iterator[tuple[str, Decimal]]:
    """Yield what a call that has ended counts against a budget: its declared cost, and what was bought."""
    yield from {"calls": ONE_CALL, **(endpoint.cost.amounts if endpoint.cost else {})}.items()
    if endpoint.key != _KEY or not endpoint.builtin or not isinstance(output, dict):
        return
    match output.get("amount"):
        case {"value": str(value), "currency": str(currency)}:
            money = read_money(value, currency)
            if isinstance(money, Money):
                yield currency, money.amount


def merchant_of(call: RoutedCall) -> dict[str, str]:
    """Return what a buyer says of the merchant and of the purchase, by header.

    Callers of MCP and A2A cannot send headers with a call, so parameters say the same; a header takes precedence.
    """
    headers, given = call.request.headers, call.input
    said = {name.replace("_", "-"): given[name] for name in MERCHANT if name in given}
    return {**said, **{name: headers[name] for name in (one.replace("_", "-") for one in MERCHANT) if name in headers}}


def recorded_merchant(call: RoutedCall) -> dict[str, str]:
    """Return what the audit record of a purchase has beside its input (core 10.3)."""
    from bespeak.state.audit.record import payload_of  # noqa: PLC0415 - loads cryptography, for purchases

    said = merchant_of(call)
    recorded = {name: said[header] for name, header in _RECORDED.items() if header in said}
    intent = payload_of(said.get(INTENT_ASSERTION, ""))
    if intent is not None and isinstance(intent.get("jti"), str):
        recorded["intent_assertion_jti"] = intent["jti"]
    return recorded


def _refuse_merchant(call: RoutedCall) -> Refused | None:
    said = merchant_of(call)
    named, print_of = said.get(MERCHANT_ID), said.get(MERCHANT_MANIFEST_FINGERPRINT)
    merchant = call.server.part("payments").settings.merchant_id or call.routes.service.identity.server_id
    publication = call.routes.publication
    # The buyer has verified what was shown to it, or what everybody sees.
    shown = [hashlib.sha256(publication.manifest_for(who).body).hexdigest() for who in (call.principal, ANONYMOUS)]
    if named is None or print_of is None:
        message = "PURCHASE needs Merchant-ID and Merchant-Manifest-Fingerprint, the SHA-256 of the manifest."
    elif named != merchant:
        message = f"This merchant is {merchant}, not the one that was named."
    elif print_of.lower().removeprefix("sha256:").removeprefix("sha-256:") not in shown:
        message = "The manifest has changed, or another one was verified; DISCOVER / it with the target `manifest`."
    else:
        return None
    claimed = {"merchant_id": merchant, "merchant_manifest_fingerprint": shown[0]}
    return _PURCHASE.refuse("counterparty-unverified", message, merchant=claimed)
