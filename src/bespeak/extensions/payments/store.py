"""The ledger: accounts, and entries that are only ever added. The entries of a transaction sum to zero.

It is one of the providers that hold, settle, release and refund the money of purchases; another is asked over HTTPS.

An account has a currency, a balance in its smallest unit, and a credit limit below zero that it does not exceed. Its
row is locked while its balance changes, so that this holds however many processes spend at the same time.

Every purchase passes through `held` and `sales`. They have no row, which all buyers would have to lock, and no
limit: their balance is the sum of their entries.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, ClassVar, Final, Literal, Protocol

import msgspec

from bespeak.extensions.payments.settings import Money
from bespeak.state.store.store import AGAIN, Command, Conflict, Grouping, Result, Statement, Steps, read_all

HELD: Final = "held"  # account of money that is held for purchases
SALES: Final = "sales"  # account of money that was paid
OPENING: Final = "opening"  # account that opening balances come from
_MOST: Final = 2**62  # of a balance, and credit of the account that opening balances come from
_SUMMED: Final = (HELD, SALES)  # accounts without a row
_ARE_SUMMED: Final = "IN ('held', 'sales')"
_OPEN: Final = (
    "INSERT INTO ledger_accounts (account, currency, balance, credit) VALUES (?, ?, 0, ?) "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_ENTRY: Final = "INSERT INTO ledger_entries (transaction_id, account, currency, amount, at)"
# A transaction is posted if both its accounts accept it; which one does not, its steps tell. Accounts are locked in
# order, so that two processes do not wait for each other.
_MOVE_MANY: Final = f"""
{_ENTRY} SELECT i.transaction_id, e.account, i.currency, e.amount, {{now}}
FROM {{input}} AS i CROSS JOIN LATERAL (VALUES (i.source, -i.amount), (i.target, i.amount)) AS e (account, amount)
LEFT JOIN (
    SELECT n, count(*) AS accepting FROM (
        SELECT i.n, a.balance::numeric + CASE a.account WHEN i.source THEN -i.amount ELSE i.amount END AS after,
            CASE a.account WHEN i.source THEN -a.credit ELSE {-_MOST} END AS least
        FROM {{input}} AS i JOIN ledger_accounts AS a ON a.currency = i.currency AND a.account IN (i.source, i.target)
        WHERE NOT a.account {_ARE_SUMMED} ORDER BY a.account, a.currency FOR UPDATE OF a
    ) AS locked WHERE after BETWEEN least AND {_MOST} GROUP BY n
) AS judged USING (n)
WHERE coalesce(accepting, 0) = (NOT i.source {_ARE_SUMMED})::int + (NOT i.target {_ARE_SUMMED})::int
    AND NOT EXISTS (SELECT FROM ledger_entries AS k WHERE k.transaction_id = i.transaction_id)
RETURNING transaction_id, account, currency, amount
"""


def account_of(principal_id: str) -> str:
    """Return the name of a principal's account, which none of the ledger's own has."""
    return f"principal/{principal_id}"


class Account(msgspec.Struct, frozen=True):
    account: str
    currency: str
    balance: int
    credit: int  # amount by which the balance may be below zero


class LedgerEntry(msgspec.Struct, frozen=True):
    position: int
    transaction_id: str
    account: str
    currency: str
    amount: int  # change of the balance
    at: float


def _accounts_of(command: Any) -> Collection[Hashable]:
    accounts = {command.source, command.target}.difference(_SUMMED)
    return [("transactions", command.transaction_id), *(("accounts", name, command.currency) for name in accounts)]


class OpenAccount(Command, frozen=True):
    """Open an account with a balance, or set the credit limit of one that is open."""

    guards: ClassVar[bool] = True
    account: str
    currency: str
    opening: int = 0
    credit: int = 0

    def steps(self) -> Steps:
        """Return True if the account is new, or the Conflict of its opening balance."""
        rows = yield Statement(_OPEN, (self.account, self.currency, self.credit))
        if not rows:
            yield Statement(
                "UPDATE ledger_accounts SET credit = ? WHERE account = ? AND currency = ?",
                (self.credit, self.account, self.currency),
            )
        elif self.opening:
            name = f"opening {self.account} {self.currency}"
            return (yield from MoveMoney(name, OPENING, self.account, self.currency, self.opening).steps())
        return bool(rows)


class MoveMoney(Command, frozen=True):
    """Move an amount between two accounts, once for each transaction id."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={**dict.fromkeys(("transaction_id", "source", "target", "currency"), "text"), "amount": "bigint"},
        change=_MOVE_MANY,
        after=f"""
            UPDATE ledger_accounts AS a SET balance = a.balance + c.amount FROM {{change}} AS c
            WHERE a.account = c.account AND a.currency = c.currency AND NOT a.account {_ARE_SUMMED}
        """,
        answer="SELECT DISTINCT i.n FROM {input} AS i JOIN {change} AS c USING (transaction_id)",
        result=lambda _, row: AGAIN if row is None else True,
        rows=_accounts_of,
        independent=True,
    )
    transaction_id: str
    source: str
    target: str
    currency: str
    amount: int

    def steps(self) -> Steps:
        """Return True, False if that was done before, or a Conflict.

        Conflicts: no-account; insufficient-funds; too-much, if a balance would become too large; differs, if the id
        stands for another transaction.
        """
        assert self.amount > 0
        if OPENING in (self.source, self.target):
            yield Statement(_OPEN, (OPENING, self.currency, _MOST))
        rows = yield Statement(
            "SELECT account, balance, credit FROM ledger_accounts WHERE currency = ? AND account IN (?, ?) "
            "ORDER BY account {lock}",
            (self.currency, self.source, self.target),
        )
        changes = {self.source: -self.amount, self.target: self.amount}
        # After the lock: another process may just have done it.
        known = yield Statement(
            "SELECT account, currency, amount FROM ledger_entries WHERE transaction_id = ?", (self.transaction_id,)
        )
        if known:
            same = {(*row,) for row in known} == {(name, self.currency, change) for name, change in changes.items()}
            return False if same else Conflict("differs", {"transaction_id": self.transaction_id})
        found = {row[0]: row for row in rows}
        kept = {name: change for name, change in changes.items() if name not in _SUMMED}
        for name, change in kept.items():
            told = {"account": name, "currency": self.currency}
            if name not in found:
                return Conflict("no-account", told)
            _, balance, credit = found[name]
            if change < 0 and balance + change < -credit:
                return Conflict("insufficient-funds", told)
            if not -_MOST <= balance + change <= _MOST:
                return Conflict("too-much", told)
        for name, change in kept.items():
            yield Statement(
                "UPDATE ledger_accounts SET balance = balance + ? WHERE account = ? AND currency = ?",
                (change, name, self.currency),
            )
        for name, change in changes.items():
            values = (self.transaction_id, name, self.currency, change)
            yield Statement(f"{_ENTRY} VALUES (?, ?, ?, ?, {{now}})", values)
        return True


class ListAccounts(Command, frozen=True):
    limit: int = 100

    def steps(self) -> Result[list[Account]]:
        return read_all(
            Account,
            "SELECT account, currency, balance, credit FROM ("
            f"SELECT account, currency, balance, credit FROM ledger_accounts WHERE NOT account {_ARE_SUMMED} "
            "UNION ALL SELECT account, currency, CAST(sum(amount) AS BIGINT), 0 FROM ledger_entries "
            f"WHERE account {_ARE_SUMMED} GROUP BY account, currency) AS listed ORDER BY account, currency LIMIT ?",
            self.limit,
        )


class ListEntries(Command, frozen=True):
    """List the latest entries, the latest first."""

    account: str | None = None
    limit: int = 100
    before: int = _MOST  # position of the last entry of the previous page

    def steps(self) -> Result[list[LedgerEntry]]:
        of, accounts = ("", ()) if self.account is None else ("account = ? AND ", (self.account,))
        columns = "position, transaction_id, account, currency, amount, at"
        sql = f"SELECT {columns} FROM ledger_entries WHERE {of}position < ? ORDER BY position DESC LIMIT ?"
        return read_all(LedgerEntry, sql, *accounts, self.before, self.limit)


class CheckLedger(Command, frozen=True):
    """Compare the balances with the entries, and the entries of each transaction with each other."""

    def steps(self) -> Steps:
        """Return what does not agree: transactions that do not sum to zero, accounts with a wrong balance, and those
        without a row that have paid more than they got.
        """
        uneven = yield Statement(
            "SELECT transaction_id FROM ledger_entries GROUP BY transaction_id, currency HAVING sum(amount) <> 0 "
            "LIMIT 100"
        )
        wrong = yield Statement(
            "SELECT a.account, a.currency FROM ledger_accounts AS a LEFT JOIN ledger_entries AS e "
            f"ON e.account = a.account AND e.currency = a.currency WHERE NOT a.account {_ARE_SUMMED} "
            "GROUP BY a.account, a.currency, a.balance HAVING a.balance <> coalesce(sum(e.amount), 0) "
            f"UNION ALL SELECT account, currency FROM ledger_entries WHERE account {_ARE_SUMMED} "
            "GROUP BY account, currency HAVING sum(amount) < 0 LIMIT 100"
        )
        return [f"transaction {row[0]}" for row in uneven] + [f"account {row[0]} {row[1]}" for row in wrong]


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
        own = account_of(order.principal_id)
        ways = {"hold": (own, HELD), "settle": (HELD, SALES), "release": (HELD, own), "refund": (SALES, own)}
        source, target = ways[phase]
        move = MoveMoney(order.key, source, target, order.money.currency, order.money.minor)
        return CarriedOut(order.purchase_id, (move,))

    async def close(self) -> None:
        """Do nothing: the store is closed by others."""
