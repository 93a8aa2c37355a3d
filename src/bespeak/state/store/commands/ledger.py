"""The ledger: accounts, and entries that are only ever added. The entries of a transaction sum to zero.

An account has a currency, a balance in its smallest unit, and a credit limit below zero that it does not exceed. Its
row is locked while its balance changes, so that this holds however many processes spend at the same time.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Statement, Steps

HELD: Final = "held"
"""Account of money that is held for purchases."""
SALES: Final = "sales"
"""Account of money that was paid."""
OPENING: Final = "opening"
"""Account that opening balances come from."""
_UNLIMITED: Final = 2**62
_SYSTEM: Final = {HELD: 0, SALES: 0, OPENING: _UNLIMITED}
"""Accounts of the ledger itself, with their credit limits."""
_MOST: Final = 2**62


def account_of(principal_id: str) -> str:
    """Return the name of a principal's account, which none of the ledger's own has."""
    return f"principal/{principal_id}"


class Account(msgspec.Struct, frozen=True):
    """An account."""

    account: str
    currency: str
    balance: int
    credit: int
    """Amount by which the balance may be below zero."""


class Entry(msgspec.Struct, frozen=True):
    """One side of a transaction."""

    position: int
    transaction_id: str
    account: str
    currency: str
    amount: int
    """Change of the balance."""
    at: float


class OpenAccount(Command, frozen=True):
    """Open an account with a balance, or set the credit limit of one that is open."""

    guards: ClassVar[bool] = True
    account: str
    currency: str
    opening: int = 0
    credit: int = 0

    def steps(self) -> Steps:
        """Return True if the account is new, or the Conflict of its opening balance."""
        rows = yield Statement(
            "INSERT INTO ledger_accounts (account, currency, balance, credit) VALUES (?, ?, 0, ?) "
            "ON CONFLICT DO NOTHING RETURNING 1",
            (self.account, self.currency, self.credit),
        )
        if not rows:
            yield Statement(
                "UPDATE ledger_accounts SET credit = ? WHERE account = ? AND currency = ?",
                (self.credit, self.account, self.currency),
            )
        elif self.opening:
            name = f"opening {self.account} {self.currency}"
            moved = yield from MoveMoney(name, OPENING, self.account, self.currency, self.opening).steps()
            return moved
        return bool(rows)


class MoveMoney(Command, frozen=True):
    """Move an amount between two accounts, once for each transaction id."""

    guards: ClassVar[bool] = True
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
        for name in (self.source, self.target):
            if name in _SYSTEM:
                yield Statement(
                    "INSERT INTO ledger_accounts (account, currency, balance, credit) VALUES (?, ?, 0, ?) "
                    "ON CONFLICT DO NOTHING",
                    (name, self.currency, _SYSTEM[name]),
                )
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
        for name, change in changes.items():
            if name not in found:
                return Conflict("no-account", {"account": name, "currency": self.currency})
            _, balance, credit = found[name]
            if change < 0 and balance + change < -credit:
                return Conflict("insufficient-funds", {"account": name, "currency": self.currency})
            if not -_MOST <= balance + change <= _MOST:
                return Conflict("too-much", {"account": name, "currency": self.currency})
        for name, change in changes.items():
            yield Statement(
                "UPDATE ledger_accounts SET balance = balance + ? WHERE account = ? AND currency = ?",
                (change, name, self.currency),
            )
            yield Statement(
                "INSERT INTO ledger_entries (transaction_id, account, currency, amount, at) VALUES (?, ?, ?, ?, {now})",
                (self.transaction_id, name, self.currency, change),
            )
        return True


class ListAccounts(Command, frozen=True):
    """List the accounts, by name."""

    after: tuple[str, str] = ("", "")
    """Name and currency of the last account of the previous page."""
    limit: int = 100

    def steps(self) -> Steps:
        """Return a list of Accounts."""
        rows = yield Statement(
            "SELECT account, currency, balance, credit FROM ledger_accounts WHERE (account, currency) > (?, ?) "
            "ORDER BY account, currency LIMIT ?",
            (*self.after, self.limit),
        )
        return [Account(*row) for row in rows]


class ListEntries(Command, frozen=True):
    """List the latest entries, the latest first."""

    account: str | None = None
    limit: int = 100

    def steps(self) -> Steps:
        """Return a list of Entries."""
        where, values = ("", ()) if self.account is None else ("WHERE account = ? ", (self.account,))
        rows = yield Statement(
            f"SELECT position, transaction_id, account, currency, amount, at FROM ledger_entries {where}"
            "ORDER BY position DESC LIMIT ?",
            (*values, self.limit),
        )
        return [Entry(*row) for row in rows]


class CheckLedger(Command, frozen=True):
    """Compare the balances with the entries, and the entries of each transaction with each other."""

    def steps(self) -> Steps:
        """Return what does not agree: transactions that do not sum to zero, and accounts with a wrong balance."""
        uneven = yield Statement(
            "SELECT transaction_id FROM ledger_entries GROUP BY transaction_id, currency HAVING sum(amount) <> 0 "
            "LIMIT 100"
        )
        wrong = yield Statement(
            "SELECT a.account, a.currency FROM ledger_accounts AS a LEFT JOIN ledger_entries AS e "
            "ON e.account = a.account AND e.currency = a.currency GROUP BY a.account, a.currency, a.balance "
            "HAVING a.balance <> coalesce(sum(e.amount), 0) LIMIT 100"
        )
        return [f"transaction {row[0]}" for row in uneven] + [f"account {row[0]} {row[1]}" for row in wrong]
