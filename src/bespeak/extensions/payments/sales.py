"""Sales: what the seller's own functions say and do for a purchase, in the authority of the buyer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.participant import SOLD, Price, Sold
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import PURCHASES
from bespeak.extensions.payments.settings import Money, read_money
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.participant import Joined, ResultJournal, run_joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.functions.signature import read_signature
from bespeak.runtime.handling import RefusedError, passed
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.store import Command

_logger = logging.getLogger(__name__)

MOST_DELIVERED: Final = 256 * 1024  # bytes of a delivered item that are kept
_PURCHASE: Final = STANDARD["PURCHASE"]
_OMITTED: Final = {"code": "result-too-large", "message": f"It has more than {MOST_DELIVERED} bytes and is not kept."}


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
        message = f"The sale {name} does not take this input: {violations[0].message}."
        return _PURCHASE.refuse("invalid-item", message, field=listed[0]["field"], violations=listed)

    def find_refund(self, item: Any) -> Any:
        """Return what the function for refunds of an item returns: Price if it says how much; None without one."""
        joined = self._sales.get(read_item(item)[0])
        found = None if joined is None else joined.participant.functions.get("refund")
        return None if found is None else read_signature(found.function).returns

    async def ask_price(self, call: RoutedCall, item: Any) -> Money:
        """Return the price of an item. Raises the refusal of the seller, or of an item that cannot be bought."""
        passed(self.check(call, item))
        name, given = read_item(item)
        output, refused = await run_joined(self._dispatcher, call, self._sales[name].routes["price"], given, "price")
        if refused is not None:
            raise RefusedError(refused)
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

        def keep(body: bytes) -> Command:
            if len(body) > MOST_DELIVERED:
                _logger.error("%s has returned more than %d bytes, which are not kept", sold.key, MOST_DELIVERED)
            return note(msgspec.json.decode(body) if len(body) <= MOST_DELIVERED else _OMITTED)

        journal = ResultJournal(sold.key, keep)
        return (await run_joined(self._dispatcher, call, joined.routes[role], given, role, journal=journal))[1]
