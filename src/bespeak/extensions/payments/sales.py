"""Sales: what the seller's own functions say and do for a purchase, in the authority of the buyer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.participant import SOLD, Price, Sold
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import PURCHASES
from bespeak.errors import StoreError
from bespeak.extensions.payments.settings import Money, read_money
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import Journal, RoutedCall, StepCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.functions.signature import read_signature
from bespeak.runtime.handling import RefusedError, passed, to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.store import Command

_logger = logging.getLogger(__name__)

MOST_DELIVERED: Final = 256 * 1024  # bytes of a delivered item that are kept
_MOST_DETAILS: Final = 4096
_PURCHASE: Final = STANDARD["PURCHASE"]
_LOST: Final = "idempotency-lease-lost"
_UNAVAILABLE: Final = "store-unavailable"
_OWN: Final = frozenset({"code", "message", "type", "method", "path"})  # members of an error that name the hidden step


def read_item(item: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of the sale and its input. A name alone stands for a sale without input."""
    return (str(item.get("sale", "")), item.get("input", {})) if isinstance(item, Mapping) else (str(item), {})


class Sales:
    """The sales of a service."""

    def __init__(self, dispatcher: Dispatcher, sales: Mapping[str, Joined], currencies: Iterable[str]) -> None:
        self._dispatcher = dispatcher
        self._sales = sales
        self._currencies = tuple(currencies)

    def check(self, call: RoutedCall, item: Any) -> Refused | None:
        """Refuse an item that the caller may not buy, or whose input its sale does not take."""
        name, given = read_item(item)
        scopes = call.principal.scopes
        usable = sorted(key for key, one in self._sales.items() if not scopes.missing(one.participant.scopes))
        if name not in usable:
            known = ", ".join(usable) or "none"
            message = f"There is no item {name[:80]!r} that this agent may buy; there are: {known}."
            return _PURCHASE.refuse("unknown-item", message, field="/item", sales=usable)
        violations = self._sales[name].routes["price"].input.violations(given)
        if not violations:
            return None
        listed = [{"field": f"/item/input{one.pointer}", "message": one.message} for one in violations]
        message = f"The sale {name} does not take this input: {violations[0].message}"
        return _PURCHASE.refuse("invalid-item", message, field=listed[0]["field"], violations=listed)

    def takes_back(self, item: Any) -> bool:
        """Return True if the sale of an item has a function for refunds."""
        joined = self._sales.get(read_item(item)[0])
        return joined is not None and "refund" in joined.routes

    async def ask_price(self, call: RoutedCall, item: Any) -> Money:
        """Return the price of an item. Raises the refusal of the seller, or of an item that cannot be bought."""
        passed(self.check(call, item))
        name, given = read_item(item)
        step = await self._run(call, name, "price", given)
        response, output = step.response, step.output
        assert response is not None, "the step has been answered"
        if not status.is_success(response.status):
            raise RefusedError(_read_refusal(response))
        price = msgspec.convert(output, Price, from_attributes=True)
        money = read_money(price.value, price.currency)
        fault = money if isinstance(money, str) else None if money.minor else "must be more than nothing"
        if price.currency not in self._currencies:
            fault = f"is in {price.currency}, which [payments] currencies does not have"
        if isinstance(money, Money) and fault is None:
            return money
        _logger.error("the price of the sale %s %s", name, fault)
        message = f"The sale {name} has returned a price that cannot be paid; the operator's log has the reason."
        raise RefusedError(Refused(status.SERVER_ERROR, "server-error", message))

    async def act(
        self, role: str, item: Any, sold: Sold, authority: Authority | None, note: Callable[[Any], Command]
    ) -> Refused | None:
        """Let the seller fulfil or take back a purchase. What it returns is noted in the transaction of its effects.

        Returns its refusal or failure; None if its result was noted, here or by another process meanwhile.
        """
        name, given = read_item(item)
        joined, server = self._sales.get(name), self._dispatcher.server
        if joined is None or role not in joined.routes or authority is None:
            return Refused(status.SERVER_ERROR, "server-error", f"This server does not have {role} of the sale {name}.")
        call = restore_call(authority, server, "PURCHASE")
        if isinstance(call, Refused):
            return call
        if role == "fulfil" and not call.principal.scopes.covers(PURCHASES):
            return Refused(status.SCOPE_VIOLATION, "scope-violation", f"The agent does not hold {PURCHASES} any more.")
        function = joined.participant.functions[role].function
        if any(one.name == SOLD for one in read_signature(function).parameters):
            given = {**given, SOLD: msgspec.to_builtins(sold)}
        step = await self._run(call, name, role, given, _SaleJournal(sold.key, note))
        response = step.response
        assert response is not None, "the step has been answered"
        if status.is_success(response.status) or response.code == _LOST:
            return None
        if response.code == _UNAVAILABLE:
            raise StoreError("the outcome of a sale could not be noted")
        return _read_refusal(response)

    async def _run(
        self, call: RoutedCall, name: str, role: str, given: dict[str, Any], journal: Journal | None = None
    ) -> StepCall:
        route = self._sales[name].routes[role]
        step = self._dispatcher.run_step(call, route, given, route.endpoint.path, role, journal=journal)
        return await step if asyncio.iscoroutine(step) else step


def _read_refusal(response: Response) -> Refused:
    """Return the refusal of a function of a sale, as the answer of the method that it takes part in."""
    body = msgspec.json.decode(response.body) if response.body else {}
    error = body.get("error", {}) if isinstance(body, dict) else {}
    details = {name: value for name, value in error.items() if name not in _OWN}
    details = details if len(to_json(details)) <= _MOST_DETAILS else {}
    return Refused(response.status, response.code or "server-error", str(error.get("message", "")), details)


class _SaleJournal:
    """Notes what a seller has returned, in the transaction of its step."""

    def __init__(self, key: str, make: Callable[[Any], Command]) -> None:
        self.key = key
        self._make = make

    def note(self, response: Response) -> Command | None:
        if not status.is_success(response.status):
            return None
        body = response.body or b"null"
        if len(body) <= MOST_DELIVERED:
            return self._make(msgspec.json.decode(body))
        _logger.error("%s has returned more than %d bytes, which are not kept", self.key, MOST_DELIVERED)
        return self._make({"code": "result-too-large", "message": f"It has more than {MOST_DELIVERED} bytes."})

    def noted(self, _: Any, response: Response) -> Response:
        return response
