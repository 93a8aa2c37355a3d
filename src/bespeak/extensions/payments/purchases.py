"""Purchases: what is stored of each, carried through their phases, continued after a crash, never charged twice.

A purchase is held, fulfilled by its seller, and settled. With the ledger, a change of a purchase and the money that it
moves are one transaction, and so are the effects of the seller in the store, what it delivers, and the settlement. A
provider outside is asked after the purchase says what it is asked for. Each order and each act of the seller has a key
of its own: whoever continues repeats it with that key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from bespeak.contract.participant import SOLD, Price, Sold
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import PURCHASES
from bespeak.errors import ConfigError, StoreError
from bespeak.extensions.payments import store as ledger
from bespeak.extensions.payments.settings import LEDGER, Money, PaymentSettings, read_money
from bespeak.extensions.payments.store import CarriedOut, Outcome, Phase, Provider
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.functions.signature import read_signature
from bespeak.runtime.handling import (
    Conflicts,
    RefusedError,
    ResultJournal,
    effects,
    may_pass_later,
    passed,
    refuse_conflict,
    run_function,
    to_json,
)
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import ChangeRecord, ChangeWith, FindRecord, Record, RenewRecords
from bespeak.state.store.store import Command, Conflict, Store

_logger = logging.getLogger(__name__)

MOST_DELIVERED: Final = 256 * 1024  # bytes of a delivered item that are kept
_PURCHASE: Final = STANDARD["PURCHASE"]
_OMITTED: Final = {"code": "result-too-large", "message": f"It has more than {MOST_DELIVERED} bytes and is not kept."}


def read_item(item: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of the sale and its input. A name alone stands for a sale without input."""
    return (str(item.get("sale", "")), item.get("input", {})) if isinstance(item, Mapping) else (str(item), {})


class Sales:
    def __init__(self, server: Server, sales: Mapping[str, Joined], currencies: Iterable[str]) -> None:
        self._server = server
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
        output = await run_function(call, self._sales[name].routes["price"], given, number="price")
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
        joined = self._sales.get(name)
        if joined is None or role not in joined.routes or authority is None:
            return Refused(status.SERVER_ERROR, "server-error", f"This server does not have {role} of the sale {name}.")
        call = restore_call(authority, self._server, "PURCHASE")
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

        try:
            await run_function(call, joined.routes[role], given, number=role, journal=ResultJournal(sold.key, keep))
        except RefusedError as error:
            return error.refused
        return None


PURCHASE: Final = "purchase"
PENDING: Final = "pending"  # state of a purchase whose provider or seller has to do something: its phase
HELD: Final = "held"
SETTLED: Final = "settled"
CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"
FAILED: Final = "failed"
HOLD: Final = "hold"
SETTLE: Final = "settle"
RELEASE: Final = "release"
REFUND: Final = "refund"
FULFIL: Final = "fulfil"  # phase in which the seller delivers
RETURN: Final = "return"  # phase in which the seller takes back
_ROLES: Final = {FULFIL: "fulfil", RETURN: "refund"}  # functions of the seller, by phase
Stage = Phase | Literal["fulfil", "return"]


class Purchase(msgspec.Struct, frozen=True, omit_defaults=True):
    item: Any  # sale and input
    principal_id: str
    money: Money  # price
    merchant: dict[str, str]  # merchant, manifest and intent that the buyer named
    payment_method: str | None = None
    immediate: bool = True  # True to settle without a CONFIRM
    limit: Money | None = None  # amount that the buyer named
    authority: Authority | None = None  # authority in which the seller acts
    phase: Stage = HOLD  # what the provider or the seller is asked for while the purchase is pending
    ends: str = SETTLED  # state after a release or a refund
    refund: int | None = None  # part of the amount that is given back, in smallest units; None if none is
    returned: int | None = None  # refund that the seller has agreed to; None before
    delivered: Any = None  # what the seller has returned
    refused: Refused | None = None  # last refusal of the seller or the provider
    claims: int = 0  # fence of the record when the phase began: later claims are attempts
    reference: str | None = None  # name of the payment with its provider
    attempts: int = 0  # answers of the provider in a row that left it open whether something was done
    refusals: int = 0  # refunds that the provider has declined; the next one is another order

    @property
    def part(self) -> Money:
        return self.money if self.refund is None else Money(self.refund, self.money.currency)

    def with_phase(self, phase: Stage, ends: str, **changes: Any) -> Purchase:
        return msgspec.structs.replace(self, phase=phase, ends=ends, attempts=0, **changes)

    def done(self, reference: str | None) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has carried out the phase."""
        now = msgspec.structs.replace(self, attempts=0, reference=reference or self.reference)
        if self.phase == HOLD and self.immediate:
            return now.with_phase(FULFIL, SETTLED), PENDING
        return now, {HOLD: HELD, SETTLE: SETTLED}.get(self.phase, self.ends)

    def declined(self, code: str, fault: str) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has refused the phase."""
        error = "insufficient-funds" if code == "insufficient-funds" else "payment-refused"
        reason = fault or "without a reason"
        return self.refuse(_PURCHASE.refuse(error, f"The payment provider declined to {self.phase}: {reason}."))

    def refuse(self, refused: Refused) -> tuple[Purchase, str]:
        """Return the purchase and its state after the phase was refused."""
        if self.phase in (SETTLE, FULFIL):
            return self.with_phase(RELEASE, FAILED, refused=refused), PENDING
        if self.phase in (REFUND, RETURN):
            return msgspec.structs.replace(self, refused=refused, refund=None, refusals=self.refusals + 1), SETTLED
        return msgspec.structs.replace(self, refused=self.refused or refused), FAILED

    def give_back(self, refund: Any) -> tuple[Purchase, str]:
        """Return the purchase and its state after the seller has taken the item back; None is what the buyer asks."""
        asked = self.refund or 0
        if refund:
            # The seller has the item again, so a wrong amount does not keep the buyer from getting anything.
            money = read_money(refund.get("value", ""), self.money.currency)
            if isinstance(money, Money) and refund.get("currency") == self.money.currency:
                asked = min(money.minor, self.money.minor)
            else:
                _logger.error("a refund for %s cannot be given; it is what the buyer has asked for", self.money)
        return self.with_phase(REFUND, CANCELLED, refund=asked, returned=asked), PENDING if asked else CANCELLED

    def key(self, purchase_id: str) -> str:
        return f"{purchase_id}/{self.phase}" + (f"-{self.refusals}" if self.refusals else "")

    def sold(self, purchase_id: str) -> Sold:
        """Return what the functions of the seller are told."""
        return Sold(
            purchase_id=purchase_id,
            key=self.key(purchase_id),
            principal_id=self.principal_id,
            price=Price(**self.money.document()),
            item=self.delivered,
            asked=Price(**self.part.document()),
        )


decode: Final = msgspec.json.Decoder(Purchase).decode

KEPT: Final = 400 * 86400.0  # seconds for which an ended purchase can be looked up; the entries of the ledger stay
_MOST_HOLDS: Final = 10  # unclear answers to a hold after which it is released instead of repeated
_MOST_TRIES: Final = 5  # failures of a seller after a crash, after which the money is given back
_UNSOLD: Final = "The seller could not deliver, and the money is released; buy again with a new Idempotency-Key."
_NOT_REFUNDED: Final = "The seller failed, and nothing was refunded; try again later."
_GIVEN_UP: Final = {  # answers for a seller that fails, by phase
    FULFIL: _PURCHASE.refuse("fulfilment-failed", _UNSOLD),
    RETURN: Refused(status.SERVER_ERROR, "server-error", _NOT_REFUNDED),
}
_PAUSE: Final = 2.0  # seconds after the first unclear answer; twice as many after each further one
_LONGEST_PAUSE: Final = 300.0
_MOST_CARRIED: Final = 1_000  # purchases that one process continues at the same time

Make = Callable[[str, Purchase], Command]  # makes the command that stores a purchase in a state
Tell = Callable[[Record], Envelope]  # writes the answer, or raises a refusal


class Purchases:
    def __init__(self, store: Store, settings: PaymentSettings, provider: Provider, sales: Sales) -> None:
        self._store = store
        self.sales = sales
        self.settings = settings
        self._provider = provider
        self._carried: dict[str, asyncio.Task[Record]] = {}

    async def start(self) -> None:
        """Open the configured accounts; the store must be started."""
        for account in self.settings.accounts if self._provider.in_store else ():
            opening, credit = (account.money(text).minor for text in (account.opening, account.credit))
            name = ledger.account_of(account.principal)
            done = await self._store.do(ledger.OpenAccount(name, account.currency, opening, credit))
            if isinstance(done, Conflict):
                raise ConfigError(f"The account of {account.principal} cannot be opened: {done.reason}.")

    async def close(self) -> None:
        """Stop. What is under way is continued when it is due again."""
        await cancel_tasks(*self._carried.values())
        await self._provider.close()

    async def change(
        self, purchase_id: str, purchase: Purchase, make: Make, tell: Tell, conflicts: Conflicts
    ) -> Effects | Envelope:
        """Carry out the phase of a purchase, and those behind it, and answer."""
        purchase, state, commands = await self._move(purchase_id, purchase, PENDING)
        change = make(state, purchase)
        if state != PENDING:
            return effects([change, *commands], lambda done: tell(done[0]), conflicts)
        done = await self._store.do(change, *commands)
        record = passed(refuse_conflict(done, conflicts)) if isinstance(done, Conflict) else done[0]
        return tell(await self.carry_on(record, first=True))

    async def carry_on(self, record: Record, *, first: bool = False) -> Record:
        """Carry a purchase as far as possible, for a call. It goes on if the caller leaves."""
        earlier = self._carried.get(record.record_id)
        if earlier is not None:
            await asyncio.wait([earlier])
            record = await self.find(record.record_id) or record
        return await asyncio.shield(self._begin(record, self.advance(record, first=first)))

    def _begin(self, record: Record, carrying: Coroutine[Any, Any, Record]) -> asyncio.Task[Record]:
        task = asyncio.get_running_loop().create_task(carrying, name=record.record_id)
        self._carried[record.record_id] = task
        task.add_done_callback(self._finish)
        return task

    async def _move(self, purchase_id: str, purchase: Purchase, state: str) -> tuple[Purchase, str, list[Command]]:
        """Carry a purchase through the phases of the ledger, whose commands are to be committed with it."""
        commands: list[Command] = []
        while self._provider.in_store and state == PENDING and purchase.phase not in _ROLES:
            outcome = await self._ask(purchase_id, purchase)
            assert isinstance(outcome, CarriedOut)
            commands += outcome.commands
            purchase, state = purchase.done(outcome.reference)
        return purchase, state, commands

    async def find(self, purchase_id: str | None = None, key: str | None = None) -> Record | None:
        """Return the record of a purchase, by its id or the key under which it was stored."""
        found: Record | None = await self._store.read(FindRecord((PURCHASE,), purchase_id, key))
        return found

    @property
    def lease(self) -> float:
        """Seconds after which another process continues what this one has begun."""
        return self.settings.timeout * 2 + 1

    async def advance(self, record: Record, *, first: bool = False) -> Record:
        """Carry a purchase through its phases until it rests, or until an answer is unclear."""
        while record.state == PENDING:
            purchase = decode(record.data)
            commands: list[Command] = []
            if purchase.phase in _ROLES:
                judged = await self._ask_seller(record, purchase, first=first)
                if judged is None:  # it is noted
                    found = await self.find(record.record_id)
                    if found is None or found.version == record.version:
                        return record
                    record = found
                    continue
                after, state = judged
            else:
                outcome = await self._ask(record.record_id, purchase)
                after, state = self._judge(record, purchase, outcome)
                commands += outcome.commands if isinstance(outcome, CarriedOut) else ()
            unclear = state == PENDING and after.attempts > 0
            if not unclear:
                after, state, more = await self._move(record.record_id, after, state)
                commands += more
            done = await self._store.do(self.amend(record, state, after), *commands)
            if isinstance(done, Conflict):
                if done.reason not in ("version", "state"):
                    _logger.error("%s cannot %s: %s", record.record_id, purchase.phase, done.reason)
                return await self.find(record.record_id) or record
            record = done[0]
            if unclear:
                break
        return record

    async def carry(self, records: Sequence[Record]) -> None:
        """Continue purchases that are due: holds that expire, and what a process has left behind."""
        for record in records:
            if record.record_id not in self._carried and len(self._carried) < _MOST_CARRIED:
                self._begin(record, self._continue(record))

    async def _continue(self, record: Record) -> Record:
        if record.state != HELD:
            _logger.info("continuing %s", record.record_id)
            return await self.advance(record)
        expired = decode(record.data).with_phase(RELEASE, EXPIRED)
        done = await self._store.do(self.amend(record, PENDING, expired))
        return record if isinstance(done, Conflict) else await self.advance(done[0])

    def amend(self, record: Record, state: str, after: Purchase) -> ChangeRecord:
        """Return the command that changes a purchase, unless somebody else has changed it."""
        if (state, after.phase) != (record.state, decode(record.data).phase):
            after = msgspec.structs.replace(after, claims=record.fence)
        delay, lifetime = self.times(state, after)
        times: dict[str, Any] = {"delay": delay, "lifetime": lifetime}
        what = (record.record_id, (PURCHASE,), (record.state,), state)
        return ChangeRecord(*what, version=record.version, data=to_json(after), **times)

    def _finish(self, task: asyncio.Task[Record]) -> None:
        name = task.get_name()
        self._carried.pop(name, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            shown = None if isinstance(error, StoreError) else error
            _logger.error("%s could not be continued and is tried again later: %s", name, error, exc_info=shown)

    async def _ask_seller(self, record: Record, purchase: Purchase, *, first: bool) -> tuple[Purchase, str] | None:
        """Let the seller deliver or take back, and return what follows; None if that is noted with its effects.

        An exception in the first attempt ends it. After a crash the seller may have acted before, so that it is asked
        again with the same key until it gives a definite answer.
        """
        name, tries = record.record_id, record.fence - purchase.claims
        refused: Refused | None = Refused(status.SERVER_ERROR, "interrupted", "the process ended each time")
        if tries <= _MOST_TRIES:
            paid = await self._move(name, purchase.with_phase(SETTLE, SETTLED), PENDING)

            def note(result: Any) -> Command:
                if purchase.phase == RETURN:
                    after, state = purchase.give_back(result)
                    return self.amend(record, state, after)
                after, state, commands = paid
                after = msgspec.structs.replace(after, delivered=result)
                return ChangeWith(self.amend(record, state, after), tuple(commands))

            renewing = asyncio.get_running_loop().create_task(self._renew(record))
            try:
                sold = purchase.sold(name)
                refused = await self.sales.act(_ROLES[purchase.phase], purchase.item, sold, purchase.authority, note)
            finally:
                renewing.cancel()
        if refused is None:
            return None
        failed = may_pass_later(refused)
        if failed and not first and tries < _MOST_TRIES:
            return msgspec.structs.replace(purchase, attempts=max(tries, 1)), PENDING
        if failed or not first:
            message = "%s of %s is given up, and the seller may have acted outside the store: %s"
            _logger.error(message, purchase.phase, name, refused.message)
        return purchase.refuse(_GIVEN_UP[purchase.phase] if failed else refused)

    async def _renew(self, record: Record) -> None:
        while True:
            await asyncio.sleep(self.lease / 3)
            try:
                await self._store.do(RenewRecords(PENDING, ((record.record_id, record.fence),), self.lease))
            except StoreError as error:
                _logger.warning("the lease of %s was not renewed: %s", record.record_id, error)

    async def _ask(self, purchase_id: str, purchase: Purchase) -> Outcome:
        who, way, reference = purchase.principal_id, purchase.payment_method, purchase.reference
        order = ledger.Order(purchase_id, purchase.key(purchase_id), who, purchase.part, way, reference)
        return await self._provider.carry_out(purchase.phase, order)  # type: ignore[arg-type] # not one of the seller

    def _judge(self, record: Record, purchase: Purchase, outcome: Outcome) -> tuple[Purchase, str]:
        name, phase = record.record_id, purchase.phase
        if isinstance(outcome, CarriedOut):
            return purchase.done(outcome.reference)
        if isinstance(outcome, ledger.Declined):
            # Whoever pays is told; an operator has to know of money that could not be given back.
            level = logging.INFO if phase == HOLD else logging.ERROR
            _logger.log(level, "the provider declined to %s %s: %s", phase, name, outcome.message)
            return purchase.declined(outcome.code, outcome.message)
        attempts = purchase.attempts + 1
        _logger.warning("%s of %s may have been done or not (attempt %d): %s", phase, name, attempts, outcome.message)
        if phase == HOLD and attempts >= _MOST_HOLDS:
            fault = "The payment provider did not say whether it holds the money."
            return purchase.with_phase(RELEASE, FAILED, refused=_PURCHASE.refuse("payment-refused", fault)), PENDING
        return msgspec.structs.replace(purchase, attempts=attempts), PENDING

    def times(self, state: str, purchase: Purchase) -> tuple[float | None, float | None]:
        """Return the delay until a purchase in a state is due, and its lifetime."""
        if state == PENDING:
            # Within bounds, because the number of attempts has none.
            pause = min(_PAUSE * 2.0 ** min(purchase.attempts - 1, 16), _LONGEST_PAUSE)
            return (pause if purchase.attempts else self.lease), None
        return (self.settings.hold, None) if state == HELD else (None, KEPT)


def open_purchases(store: Store, settings: PaymentSettings, environment: Mapping[str, str], sales: Sales) -> Purchases:
    if settings.provider == LEDGER:
        return Purchases(store, settings, ledger.LedgerProvider(), sales)
    token = environment.get(settings.token_variable)
    if not token or not token.isprintable() or not token.isascii():
        message = f"The payment provider needs its token in the environment variable {settings.token_variable}."
        raise ConfigError(message)
    from bespeak.extensions.payments.http_provider import HttpProvider  # noqa: PLC0415 - most servers have none

    return Purchases(store, settings, HttpProvider(settings.provider, token, settings.timeout), sales)
