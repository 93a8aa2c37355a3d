"""Purchases: what is stored of each, carried through their phases, continued after a crash, never charged twice.

With the ledger, a change of a purchase and the money that it moves are one transaction. A provider outside is asked
after the purchase says what it is asked for, and each order has a key of its own: whoever continues repeats the
order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.errors import ConfigError, StoreError
from bespeak.extensions.payments.provider import CarriedOut, Declined, LedgerProvider, Order, Outcome, Phase, Provider
from bespeak.extensions.payments.settings import LEDGER, Money, PaymentSettings
from bespeak.extensions.payments.store import OpenAccount, account_of
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.handling import Conflicts, effects, passed, refuse_conflict
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.store import Command, Conflict, Store

PURCHASE: Final = "purchase"
PENDING: Final = "pending"  # state of a purchase whose provider has to do something: its phase
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
    item: Any
    principal_id: str
    money: Money
    merchant: dict[str, str]  # merchant, manifest and intent that the buyer named
    payment_method: str | None = None
    immediate: bool = True  # True to settle without a CONFIRM
    phase: Phase = HOLD  # what the provider is asked for while the purchase is pending
    ends: str = SETTLED  # state after a release or a refund
    refund: int | None = None  # part of the amount that is given back, in smallest units; None if none is
    reference: str | None = None  # name of the payment with its provider
    attempts: int = 0  # answers of the provider in a row that left it open whether something was done
    refusals: int = 0  # refunds that the provider has declined; the next one is another order
    fault: str | None = None  # reason for which the provider declined
    fault_code: str | None = None

    @property
    def part(self) -> Money:
        return self.money if self.refund is None else Money(self.refund, self.money.currency)

    def with_phase(self, phase: Phase, ends: str, **changes: Any) -> Purchase:
        return msgspec.structs.replace(self, phase=phase, ends=ends, attempts=0, **changes)

    def done(self, reference: str | None) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has carried out the phase."""
        now = msgspec.structs.replace(self, attempts=0, reference=reference or self.reference)
        if self.phase == HOLD and self.immediate:
            return now.with_phase(SETTLE, SETTLED), PENDING
        return now, {HOLD: HELD, SETTLE: SETTLED}.get(self.phase, self.ends)

    def declined(self, code: str, fault: str) -> tuple[Purchase, str]:
        """Return the purchase and its state after the provider has refused the phase."""
        now = msgspec.structs.replace(self, fault=fault, fault_code=code)
        if self.phase == SETTLE:
            return now.with_phase(RELEASE, FAILED), PENDING
        if self.phase == REFUND:
            return msgspec.structs.replace(now, refund=None, refusals=self.refusals + 1), SETTLED
        return now, FAILED

    def key(self, purchase_id: str) -> str:
        return f"{purchase_id}/{self.phase}" + (f"-{self.refusals}" if self.refusals else "")

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


decode: Final = msgspec.json.Decoder(Purchase).decode
_logger = logging.getLogger(__name__)

KEPT: Final = 400 * 86400.0  # seconds for which an ended purchase can be looked up; the entries of the ledger stay
_MOST_HOLDS: Final = 10  # unclear answers to a hold after which it is released instead of repeated
_PAUSE: Final = 2.0  # seconds after the first unclear answer; twice as many after each further one
_LONGEST_PAUSE: Final = 300.0
_MOST_CARRIED: Final = 1_000  # purchases that one process continues at the same time

Make = Callable[[str, Purchase, float | None, float | None], Command]
"""Makes the command that stores a purchase, of its state, its content, the delay until it is due and its lifetime."""
Tell = Callable[[Record], Envelope]  # writes the answer, or raises a refusal


class Purchases:
    def __init__(self, store: Store, settings: PaymentSettings, provider: Provider) -> None:
        self._store = store
        self.settings = settings
        self._provider = provider
        self._carried: dict[str, asyncio.Task[Record]] = {}

    async def start(self) -> None:
        """Open the configured accounts; the store must be started."""
        for account in self.settings.accounts if self._provider.in_store else ():
            opening, credit = account.money(account.opening), account.money(account.credit)
            command = OpenAccount(account_of(account.principal), account.currency, opening.minor, credit.minor)
            done = await self._store.do(command)
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
        if self._provider.in_store:
            commands: list[Command] = []
            state = PENDING
            while state == PENDING:
                outcome = await self._ask(purchase_id, purchase)
                assert isinstance(outcome, CarriedOut)
                commands += outcome.commands
                purchase, state = purchase.done(outcome.reference)
            change = make(state, purchase, *self._times(state, purchase))
            return effects([change, *commands], lambda done: tell(done[0]), conflicts)
        carried = await self.carry_out(make(PENDING, purchase, self.lease, None))
        return tell(passed(refuse_conflict(carried, conflicts) if isinstance(carried, Conflict) else carried))

    async def carry_out(self, command: Command) -> Record | Conflict:
        """Store a purchase that is pending, and carry it out as far as possible now."""
        done = await self._store.do(command)
        return done if isinstance(done, Conflict) else await self.advance(done[0])

    async def find(self, purchase_id: str | None = None, key: str | None = None) -> Record | None:
        """Return the record of a purchase, by its id or the key under which it was stored."""
        found: Record | None = await self._store.read(FindRecord((PURCHASE,), purchase_id, key))
        return found

    @property
    def in_store(self) -> bool:
        """True if a purchase and its answer are one transaction."""
        return self._provider.in_store

    @property
    def lease(self) -> float:
        """Seconds after which another process continues what this one has begun."""
        return self.settings.timeout * 2 + 1

    async def advance(self, record: Record) -> Record:
        """Carry a purchase through its phases until it rests, or until an answer is unclear."""
        while record.state == PENDING:
            purchase = decode(record.data)
            outcome = await self._ask(record.record_id, purchase)
            after, state = self._judge(record, purchase, outcome)
            unclear = state == PENDING and after.attempts > 0
            delay, lifetime = self._times(state, after)
            change = ChangeRecord(
                *(record.record_id, (PURCHASE,), (PENDING,), state),
                version=record.version,
                data=after.text(),
                delay=delay,
                lifetime=lifetime,
            )
            done = await self._store.do(change, *(outcome.commands if isinstance(outcome, CarriedOut) else ()))
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
                task = asyncio.get_running_loop().create_task(self._continue(record), name=record.record_id)
                self._carried[record.record_id] = task
                task.add_done_callback(self._finish)

    async def _continue(self, record: Record) -> Record:
        if record.state != HELD:
            _logger.info("continuing %s", record.record_id)
            return await self.advance(record)
        expired = decode(record.data).with_phase(RELEASE, EXPIRED)
        done = await self.carry_out(
            ChangeRecord(
                *(record.record_id, (PURCHASE,), (HELD,), PENDING),
                version=record.version,
                fence=record.fence,
                data=expired.text(),
                delay=self.lease,
            )
        )
        return record if isinstance(done, Conflict) else done

    def _finish(self, task: asyncio.Task[Record]) -> None:
        name = task.get_name()
        self._carried.pop(name, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            shown = None if isinstance(error, StoreError) else error
            _logger.error("%s could not be continued and is tried again later: %s", name, error, exc_info=shown)

    async def _ask(self, purchase_id: str, purchase: Purchase) -> Outcome:
        order = Order(
            purchase_id=purchase_id,
            key=purchase.key(purchase_id),
            principal_id=purchase.principal_id,
            money=purchase.part,
            payment_method=purchase.payment_method,
            reference=purchase.reference,
        )
        return await self._provider.carry_out(purchase.phase, order)

    def _judge(self, record: Record, purchase: Purchase, outcome: Outcome) -> tuple[Purchase, str]:
        name, phase = record.record_id, purchase.phase
        if isinstance(outcome, CarriedOut):
            return purchase.done(outcome.reference)
        if isinstance(outcome, Declined):
            # Whoever pays is told; an operator has to know of money that could not be given back.
            level = logging.INFO if phase == HOLD else logging.ERROR
            _logger.log(level, "the provider declined to %s %s: %s", phase, name, outcome.message)
            return purchase.declined(outcome.code, outcome.message)
        attempts = purchase.attempts + 1
        _logger.warning("%s of %s may have been done or not (attempt %d): %s", phase, name, attempts, outcome.message)
        if phase == HOLD and attempts >= _MOST_HOLDS:
            fault = "the provider did not say whether it holds the money"
            return purchase.with_phase(RELEASE, FAILED, fault=fault, fault_code="provider-unavailable"), PENDING
        return msgspec.structs.replace(purchase, attempts=attempts), PENDING

    def _times(self, state: str, purchase: Purchase) -> tuple[float | None, float | None]:
        """Return the delay until a purchase in a state is due, and its lifetime."""
        if state == PENDING:
            # Within bounds, because the number of attempts has none.
            pause = min(_PAUSE * 2.0 ** min(purchase.attempts - 1, 16), _LONGEST_PAUSE)
            return (pause if purchase.attempts else self.lease), None
        return (self.settings.hold, None) if state == HELD else (None, KEPT)


def open_purchases(store: Store, settings: PaymentSettings, environment: Mapping[str, str]) -> Purchases:
    if settings.provider == LEDGER:
        return Purchases(store, settings, LedgerProvider())
    token = environment.get(settings.token_variable)
    if not token or not token.isprintable() or not token.isascii():
        message = f"The payment provider needs its token in the environment variable {settings.token_variable}."
        raise ConfigError(message)
    from bespeak.extensions.payments.http_provider import HttpProvider  # noqa: PLC0415 - most servers have none

    return Purchases(store, settings, HttpProvider(settings.provider, token, settings.timeout))
